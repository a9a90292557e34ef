"""Chat: exchanges, the requests they send, the tools they run; and the library of conversations.

exchange_loop.py      starts, runs, stops and stores exchanges on a thread of its own
planner.py            makes the plan of an exchange: what it writes before it runs
running_exchange.py   one exchange: request, stream, tool rounds, commits; reply.py: its
                      events, usage, journal and problems
request_builder.py    the first request of an exchange, from what context_fetcher.py finds in time
history.py            the past turns that a request repeats; sent_turns.py: each as it was sent;
                      compactor.py prepares what stands for the oldest ones
recall_preview.py     what would be recalled for a question
inspector.py          the sources and prompts of answers; sent_prompt.py shows a prompt by part
library.py            operations on conversations; models.py: providers and their models
tools/                the tools that models may call
"""
