"""The memory pane beside the conversation: the sources of an answer, what was sent, what is known, and the workers."""
