CREATE TABLE thread_turns(thread_id, turn_id, rollout_ordinal, status, error_json, started_at, completed_at, duration_ms);
CREATE TABLE thread_items(thread_id, turn_id, item_id, rollout_ordinal, item_json);
INSERT INTO "thread_turns" VALUES('s1','t',0,'completed',NULL,1772618400,1772618401,1000);
INSERT INTO "thread_items" VALUES('s1','t','i1',1,'{"type": "userMessage", "id": "i1", "content": [{"type": "text", "text": "What is the ohm?"}]}');
INSERT INTO "thread_items" VALUES('s1','t','i2',2,'{"type": "reasoning", "id": "i2", "summary": ["Easy."], "content": []}');
INSERT INTO "thread_items" VALUES('s1','t','i3',3,'{"type": "commandExecution", "id": "i3", "command": "units", "aggregatedOutput": "ohm", "exitCode": 0}');
INSERT INTO "thread_items" VALUES('s1','t','i4',4,'{"type": "agentMessage", "id": "i4", "text": "A unit.", "phase": "final_answer"}');
INSERT INTO "thread_items" VALUES('s2','t','i5',1,'{damaged');
