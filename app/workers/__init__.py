"""Background workers that keep memory up to date. No Qt: the command line runs the same code.

board             all workers: switching, hosting, waking, draining, warnings
loop              the worker loop; `job_interface`: what it needs from a job, and how it yields to the user
followed          places that workers watch: sessions of programs, folders of documents
jobs              one module per worker, named as the worker
retries           error classification, backoff, circuit breaker, failed items
progress          a worker's counts and rate; `status_text` shows them as text
background_model  requests to the background model; `prompts_and_answers`: what is asked
model_choice      the choice of that model: the work that waits for it, its price and consent
spend_limits      reservations under the daily and monthly limits
regeneration      summaries, facts and vectors that are made again
"""
