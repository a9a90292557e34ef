"""Background work that keeps memory up to date. No Qt: the command line runs the same code.

board                    all workers together: on and off, hosting, waking, draining, warnings
machine                  the state machine that each worker is
job                      what the machine asks of a worker: find, make, save
verdicts, progress,      whose fault a failure is and when to try again; a worker's numbers; time
  clock
open_conversation        the conversation that summaries leave alone for now
summariser               the seam behind which a language model may stand
exchange_summarizer,     the workers there are
  conversation_summarizer,
  embedding_pipeline
"""
