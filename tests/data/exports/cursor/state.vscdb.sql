CREATE TABLE cursorDiskKV(key, value);
INSERT INTO "cursorDiskKV" VALUES('composerData:c1','{"composerId": "c1", "name": "About ohms", "createdAt": 1772618400000, "fullConversationHeadersOnly": [{"bubbleId": "q"}, {"bubbleId": "x"}, {"bubbleId": "a"}]}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:q','{"bubbleId": "q", "type": 1, "text": "What is the ohm?", "workspaceProjectDir": "/home/me/heron"}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:x','{damaged');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:a','{"bubbleId": "a", "type": 2, "text": "A unit.", "modelInfo": {"modelName": "gpt-x"}}');
