-- How many of the calls have a known caller; $has_chains: whether the trace has call stacks of calls.
INSERT INTO facts.sync_calls BY NAME
SELECT
    count(*) AS calls,
    (
        SELECT count(*)
        FROM internal.chosen_calls
        SEMI JOIN facts.sync_callers USING (process_id, correlation_id)
        WHERE is_call
    ) AS placed,
    $has_chains AS has_chains
FROM internal.chosen_calls
WHERE is_call
