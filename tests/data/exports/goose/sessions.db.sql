CREATE TABLE sessions(id, name, description, user_set_name, session_type, working_dir, created_at, updated_at, model_config_json);
CREATE TABLE messages(id INTEGER PRIMARY KEY, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json);
INSERT INTO "sessions" VALUES('20260304_1','About ohms','',0,'user','/home/me/heron','2026-03-04 10:00:00','2026-03-04 10:00:00','{"model_name": "qwen"}');
INSERT INTO "messages" VALUES(1,'q','20260304_1','user','[{"type": "text", "text": "What is the ohm?"}]',1772618400,'2026-03-04 10:00:00','{"userVisible": true, "agentVisible": false}');
INSERT INTO "messages" VALUES(2,'s','20260304_1','user','[{"type": "text", "text": "A summary for the model."}]',1772618400,'2026-03-04 10:00:00','{"userVisible": false, "agentVisible": true}');
INSERT INTO "messages" VALUES(3,'x','20260304_1','assistant','{damaged',1772618400,'2026-03-04 10:00:00',NULL);
INSERT INTO "messages" VALUES(4,'a','20260304_1','assistant','[{"type": "thinking", "thinking": "Easy.", "signature": ""}, {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": {"name": "units", "arguments": {"of": "R"}}}}, {"type": "actionRequired", "data": {}}]',1772618400,'2026-03-04 10:00:00','{}');
INSERT INTO "messages" VALUES(5,'r','20260304_1','user','[{"type": "toolResponse", "id": "c1", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "ohm"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}], "isError": false}}}]',1772618400,'2026-03-04 10:00:00','{}');
INSERT INTO "messages" VALUES(6,'a','20260304_1','assistant','[{"type": "text", "text": "A unit."}]',1772618400,'2026-03-04 10:00:00','{}');
