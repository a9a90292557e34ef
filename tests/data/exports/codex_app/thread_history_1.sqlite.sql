CREATE TABLE thread_items(thread_id, turn_id, item_id, item_type, item_json, created_at_ms, rollout_ordinal);
INSERT INTO "thread_items" VALUES('s1','t','i1','userMessage','{"content": [{"type": "text", "text": "What is the ohm?"}]}',1772618400000,1);
INSERT INTO "thread_items" VALUES('s1','t','i2','agentMessage','{"text": "A unit."}',1772618400000,2);
INSERT INTO "thread_items" VALUES('s2','t','i3','userMessage','{damaged',1772618400000,1);
