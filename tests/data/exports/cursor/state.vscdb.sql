CREATE TABLE cursorDiskKV(key, value);
INSERT INTO "cursorDiskKV" VALUES('composerData:c1','{"_v": 18, "composerId": "c1", "createdAt": 1772618400000, "lastUpdatedAt": 1772618400000, "status": "completed", "generatingBubbleIds": [], "conversationMap": {}, "fullConversationHeadersOnly": [{"bubbleId": "q", "type": 1}, {"bubbleId": "x", "type": 2}, {"bubbleId": "y", "type": 2}, {"bubbleId": "t", "type": 2}, {"bubbleId": "a", "type": 2}]}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:q','{"_v": 3, "bubbleId": "q", "type": 1, "text": "", "richText": "{\"root\": {\"children\": [{\"children\": [{\"text\": \"What is \"}, {\"text\": \"the ohm?\"}]}]}}"}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:x','{damaged');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:t','{"_v": 3, "bubbleId": "t", "type": 2, "text": "", "thinking": {"text": "Easy.", "signature": ""}, "toolFormerData": {"toolCallId": "c1", "name": "units", "rawArgs": "{}", "status": "completed", "result": "\"ohm\""}}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:c1:a','{"_v": 3, "bubbleId": "a", "type": 2, "text": "A unit.", "createdAt": "2026-03-04T10:00:00.000Z", "modelInfo": {"modelName": "gpt-x"}}');
CREATE TABLE composerHeaders(composerId, workspaceId, createdAt, lastUpdatedAt, isArchived, isSubagent, recency, value);
INSERT INTO "composerHeaders" VALUES('c1','w','1772618400000','1772618400000',0,0,'1772618400000','{"type": "head", "composerId": "c1", "name": "About ohms", "workspaceIdentifier": {"id": "w", "uri": {"fsPath": "/home/me/heron"}}}');
