CREATE TABLE messages(session_id, role, content_json, created_timestamp, message_id);
INSERT INTO "messages" VALUES('c1','user','[{"type": "text", "text": "What is the ohm?"}]',1772618400,'q');
INSERT INTO "messages" VALUES('c1','assistant','{damaged',1772618400,'x');
INSERT INTO "messages" VALUES('c1','assistant','[{"type": "text", "text": "A unit."}]',1772618400,'a');
CREATE TABLE sessions(id, description, working_dir, created_at, updated_at);
INSERT INTO "sessions" VALUES('c1','About ohms','/home/me/heron','2026-03-04 10:00:00','2026-03-04 10:00:00');
