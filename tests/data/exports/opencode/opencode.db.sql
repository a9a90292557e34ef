CREATE TABLE message(id, session_id, data);
INSERT INTO "message" VALUES('m1','c1','{"role": "user"}');
INSERT INTO "message" VALUES('m2','c1','{"role": "assistant", "modelID": "qwen"}');
CREATE TABLE part(id, message_id, session_id, data);
INSERT INTO "part" VALUES('p1','m1','c1','{"type": "text", "text": "What is the ohm?"}');
INSERT INTO "part" VALUES('p2','m2','c1','{"type": "text", "text": "A unit."}');
INSERT INTO "part" VALUES('p3','m2','c1','{damaged');
CREATE TABLE session(id, title, directory, time_created, time_updated);
INSERT INTO "session" VALUES('c1','About ohms','/home/me/heron',1772618400000,1772618400000);
