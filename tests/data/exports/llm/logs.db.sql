CREATE TABLE conversations(id, name, model);
INSERT INTO "conversations" VALUES('c1','About ohms','gpt-x');
CREATE TABLE responses(id, model, prompt, system, response, conversation_id, datetime_utc);
INSERT INTO "responses" VALUES('r1','gpt-x','What is the ohm?',NULL,'A unit.','c1','2026-03-04T10:00:00');
INSERT INTO "responses" VALUES('r2','gpt-x',NULL,NULL,NULL,'c2',NULL);
