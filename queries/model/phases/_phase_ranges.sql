/*
description = "The outermost NVTX ranges that name a phase, with the step that each is part of."
stored = true
[columns]
phase = "What its name says: prefill, decode, mixed, forward, backward or optimizer"
thread_id = "Thread that opened it"
start_ns = "When the range was opened"
end_ns = "When the range was closed"
step_start_ns = "When the step of the range began: a range around it that is named step, else itself"
step_end_ns = "When the step of the range ended"
batch_size = "Sequences that it decodes, or prompts of a prefill, as the name says"
prompt_tokens = "Tokens of the prompts, as the name says"
prefill_ids = "The requests that it prefills, as the name says"
decode_ids = "The requests that it decodes, as the name says"
step_phase = "What its step is: mixed where it prefills and decodes"
*/
-- The outermost ranges that name a phase, each with its step: a range around it that is named step and contains at most
-- one decode, otherwise the range itself. If phases of serving are named (prefill, decode), names of training do not
-- count.
-- A range around other phases is not a phase but a group of them if it contains a prefill and a decode, or if its name
-- says less than theirs: "decode" around many "decode_step 7".
WITH named_ranges AS MATERIALIZED (
    SELECT r.process_id, r.thread_id, r.start_ns, r.end_ns, r.style, n.*
    FROM nvtx_ranges AS r JOIN _phase_names AS n USING (name)
    WHERE r.end_ns > r.start_ns AND r.style = 'push/pop'
),
phase_candidates AS MATERIALIZED (
    FROM named_ranges WHERE phase IS NOT NULL AND (is_serving OR NOT EXISTS (FROM named_ranges WHERE is_serving))
),
leads AS (
    SELECT DISTINCT process_id, thread_id, lead FROM phase_candidates
),
-- Phases inside a range with another name: the outer range, and what the inner one says.
inner_phases AS (
    SELECT
        o.process_id, o.thread_id, o.lead, o.start_ns, o.is_exact, r.phase AS inner_phase, r.is_exact AS is_inner_exact
    FROM (
        SELECT r.*, l.lead AS outer_lead
        FROM phase_candidates AS r
        JOIN leads AS l ON l.process_id = r.process_id AND l.thread_id = r.thread_id AND l.lead <> r.lead
    ) AS r
    ASOF JOIN phase_candidates AS o
        ON o.process_id = r.process_id AND o.thread_id = r.thread_id AND o.lead = r.outer_lead
            AND o.start_ns <= r.start_ns
    WHERE o.end_ns >= r.end_ns AND o.end_ns - o.start_ns > r.end_ns - r.start_ns
),
-- Names of ranges around phases, which are groups of them.
group_names AS (
    SELECT DISTINCT process_id, thread_id, lead
    FROM (
        SELECT process_id, thread_id, lead
        FROM inner_phases
        GROUP BY process_id, thread_id, lead, start_ns
        HAVING count(DISTINCT inner_phase) > 1 OR bool_or(is_inner_exact AND NOT is_exact)
    )
),
outermost_phases AS MATERIALIZED (
    SELECT *
    FROM phase_candidates ANTI JOIN group_names USING (process_id, thread_id, lead)
    QUALIFY coalesce(max(end_ns) OVER (
        PARTITION BY process_id, thread_id
    ORDER BY start_ns, end_ns DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) <= start_ns, true)
),
-- If requests are served one by one, they are named around the phases.
enclosing_requests AS (
    SELECT p.process_id, p.thread_id, p.start_ns, r.prefill_ids AS ids
    FROM outermost_phases AS p
    ASOF JOIN (FROM named_ranges WHERE is_request) AS r
        ON r.process_id = p.process_id AND r.thread_id = p.thread_id AND r.start_ns <= p.start_ns
    WHERE r.end_ns >= p.end_ns
),
step_leads AS (
    SELECT DISTINCT process_id, thread_id, lead FROM named_ranges WHERE is_step
),
-- Phases inside a range that is named step.
phases_in_steps AS MATERIALIZED (
    SELECT p.process_id, p.thread_id, p.start_ns, p.phase, s.lead, s.start_ns AS step_start_ns, s.end_ns AS step_end_ns
    FROM (
        SELECT p.*, l.lead AS step_lead
        FROM outermost_phases AS p JOIN step_leads AS l ON l.process_id = p.process_id AND l.thread_id = p.thread_id
        WHERE p.is_serving
    ) AS p
    ASOF JOIN (FROM named_ranges WHERE is_step) AS s
        ON s.process_id = p.process_id AND s.thread_id = p.thread_id AND s.lead = p.step_lead
            AND s.start_ns <= p.start_ns
    WHERE s.end_ns >= p.end_ns
),
-- A step decodes once. A range with several decodes is a run of steps.
step_runs AS (
    SELECT DISTINCT process_id, thread_id, lead
    FROM (
        SELECT process_id, thread_id, lead
        FROM phases_in_steps
        GROUP BY process_id, thread_id, lead, step_start_ns
        HAVING count(*) FILTER (phase <> 'prefill') > 1
    )
),
-- The step of each phase: the earliest such range.
step_times AS (
    SELECT
        process_id, thread_id, start_ns, min(step_start_ns) AS step_start_ns,
        arg_min(step_end_ns, step_start_ns) AS step_end_ns
    FROM phases_in_steps ANTI JOIN step_runs USING (process_id, thread_id, lead)
    GROUP BY process_id, thread_id, start_ns
),
phases_with_steps AS (
    SELECT
        p.phase, p.process_id, p.thread_id, p.start_ns, p.end_ns,
        coalesce(s.step_start_ns, p.start_ns) AS step_start_ns, coalesce(s.step_end_ns, p.end_ns) AS step_end_ns,
        coalesce(p.batch_size, CASE WHEN phase <> 'mixed' THEN len(c.ids) END) AS batch_size, p.prompt_tokens,
        CASE
            WHEN len(p.prefill_ids) = 0 AND phase = 'prefill' THEN coalesce(c.ids, []) ELSE p.prefill_ids
        END AS prefill_ids,
        CASE
            WHEN len(p.decode_ids) = 0 AND phase = 'decode' THEN coalesce(c.ids, []) ELSE p.decode_ids
        END AS decode_ids
    FROM outermost_phases AS p
    LEFT JOIN step_times AS s USING (process_id, thread_id, start_ns)
    LEFT JOIN enclosing_requests AS c USING (process_id, thread_id, start_ns)
)
SELECT
    *,
    CASE
        WHEN phase NOT IN ('prefill', 'decode') THEN phase
        WHEN count(DISTINCT phase) OVER (PARTITION BY process_id, thread_id, step_start_ns) > 1 THEN 'mixed'
        ELSE phase
    END AS step_phase
FROM phases_with_steps;
