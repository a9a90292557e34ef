"""Chat: exchanges, the requests they send, the tools they run; and the library of conversations.

exchange_loop     starts, runs, stops and stores exchanges on a thread of its own
planner           makes the plan of an exchange: what it writes before it runs
running_exchange  one exchange: request, stream, tool rounds, commits; `reply`: its events, usage,
                  journal and problems
request_builder   the first request of an exchange, from what `context_fetcher` finds in time and
                  `typed_recall` found while the user typed; `message_cost`: what it would cost
history           the past turns that a request repeats; `sent_turns`: each as it was sent;
                  `compactor` prepares what stands for the oldest ones
recall_preview    what would be recalled for a question; `recall_text`: as text
inspector         the sources and prompts of answers; `sent_prompt` shows a prompt by part
library           operations on conversations; `presets` and `projects` that they have
models            providers and their models
routines          prompts on a schedule; `routine_runs`: their runs
tools             the tools that models may call
"""
