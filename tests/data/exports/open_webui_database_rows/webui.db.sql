CREATE TABLE auth(id);
CREATE TABLE chat(id, user_id, title, chat, created_at, updated_at, archived, pinned, meta);
INSERT INTO "chat" VALUES('c1','u','About ohms','{"history": {"currentId": "a"}}',1772618400,1772618400,0,1,'{}');
CREATE TABLE chat_message(id, chat_id, role, parent_id, content, output, model_id, created_at);
INSERT INTO "chat_message" VALUES('c1-q','c1','user',NULL,'"What is the ohm?"',NULL,NULL,1772618400);
INSERT INTO "chat_message" VALUES('c1-a','c1','assistant','q','"A unit."','[{"type": "reasoning", "summary": [], "content": [{"type": "output_text", "text": "Easy."}]}, {"type": "function_call", "call_id": "f", "name": "units", "arguments": "{}"}, {"type": "function_call_output", "call_id": "f", "output": [{"type": "input_text", "text": "ohm"}]}, {"type": "message", "content": [{"type": "output_text", "text": "A unit."}]}]','qwen',1772618400);
INSERT INTO "chat_message" VALUES('c1-x','c1','strange','c1-q','{damaged',NULL,NULL,1772618400);
CREATE TABLE user(id);
