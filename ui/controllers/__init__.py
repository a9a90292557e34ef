"""What a gesture means: controllers call the program and tell views what came of it."""
