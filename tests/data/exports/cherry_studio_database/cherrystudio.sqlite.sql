CREATE TABLE message(id, topic_id, parent_id, role, data, model_id, created_at, deleted_at);
INSERT INTO "message" VALUES('q','c1',NULL,'user','{"parts": [{"type": "text", "text": "What is the ohm?"}]}',NULL,1772618400000,NULL);
INSERT INTO "message" VALUES('b','c1','q','assistant','{"parts": [{"type": "text", "text": "An old answer."}]}','p::old',1772618400000,NULL);
INSERT INTO "message" VALUES('a','c1','q','assistant','{"parts": [{"type": "reasoning", "text": "Easy."}, {"type": "dynamic-tool", "toolName": "units", "toolCallId": "c1", "state": "output-available", "input": {}, "output": {"content": [{"type": "text", "text": "ohm"}]}}, {"type": "text", "text": "A unit."}]}','p::qwen',1772618400000,NULL);
INSERT INTO "message" VALUES('x','c1','q','assistant','{damaged',NULL,1772618400000,NULL);
INSERT INTO "message" VALUES('d','c1','q','assistant','{"parts": [{"type": "text", "text": "Deleted."}]}',NULL,1772618400000,1772618401000);
CREATE TABLE topic(id, name, active_node_id, is_pinned, created_at, updated_at, deleted_at);
INSERT INTO "topic" VALUES('c1','About ohms','a',1,1772618400000,1772618400000,NULL);
