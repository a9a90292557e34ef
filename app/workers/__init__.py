"""Background work that keeps memory up to date. No Qt: the command line runs the same code.

board                    all workers together: on and off, hosting, waking, draining, warnings
machine                  the state machine that each worker is
job                      what the machine asks of a worker: find, make, save
verdicts, failures,      whose fault a failure is, and what then becomes of the item
patience, resting        how long a model is asked on, and a worker waits
progress, clock          a worker's numbers; time
open_conversation        the conversation that summaries leave alone for now
summariser               the seam behind which a language model may stand
exchange_summarizer,     the workers there are
  conversation_summarizer,
  tool_summarizer,
  knowledge_extractor,
  embedding_pipeline,
  man_indexer
"""
