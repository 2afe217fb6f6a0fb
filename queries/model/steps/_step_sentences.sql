/*
description = "One row: how the rows of `steps` were found, in words. No row when nothing ran on a GPU."
[columns]
method = "How steps were found, as in `step_method`"
source = "What the steps were found from: the NVTX ranges decode_step; the iterations of loop 1; --tokens"
marked_by = """What the steps were found from, with the operation that begins or ends a step: the iterations of loop 1,
    from each CUDA graph"""
steps_are = """What steps are, as a sentence: steps are the NVTX ranges decode_step; NULL where the whole scope is
    divided by a count"""
in_brief = "What the steps were found from, for brackets: NVTX ranges decode_step; loop 1"
of_process = "Continuation of the sentence: which process, which confidence"
of_process_because = "Continuation of the sentence: which process, which confidence, and why"
doubted = "Which other level of the loops may be the step; NULL if it is clear"
interrupted = "What comes between the steps, how often and how long; NULL where they are not interrupted"
tokens_misfit = "Sentence where --tokens is not a multiple of the steps; NULL where it is"
*/
-- How the steps were found, in words: each sentence once, in the pieces that reports combine.
SELECT
    method,
    CASE method
        WHEN 'nvtx' THEN 'the NVTX ranges ' || pattern
        WHEN 'count' THEN '--tokens'
        ELSE 'the iterations of loop ' || loop
    END AS source,
    CASE WHEN method IN ('graph', 'sequence') THEN source || ', ' || pattern ELSE source END AS marked_by,
    CASE method
        WHEN 'count' THEN NULL ELSE 'steps are ' || marked_by
    END AS steps_are,
    CASE method WHEN 'nvtx' THEN 'NVTX ranges ' || pattern WHEN 'count' THEN 'by --tokens' ELSE 'loop ' || loop END
        AS in_brief,
    ', of process ' || process_id || '; ' || confidence || ' confidence' AS of_process,
    of_process || ': ' || reason AS of_process_because,
    CASE WHEN doubt IS NOT NULL
        THEN 'a step may be more or less than an iteration of loop ' || loop || ': ' || doubt || ' (see loops; --loop '
            || 'chooses)'
    END AS doubted,
    (
        SELECT 'the steps are interrupted '
            || CASE count(*) WHEN 1 THEN 'once, for ' ELSE count(*) || ' times, for ' END
            || time_text(median(duration_ns)::BIGINT) || CASE count(*) WHEN 1 THEN '' ELSE ' (median)' END || ', by '
            || counted_text(median(operations)::BIGINT, 'operation') || ', mostly ' || operation_text(mode(operation))
        FROM facts.step_interruptions
        HAVING count(*) > 0
    ) AS interrupted,
    CASE WHEN method <> 'count' AND (tokens_per_step < 1 OR tokens_per_step <> round(tokens_per_step))
        THEN 'a step would make ' || round(tokens_per_step, 2) || ' tokens: --tokens does not match the '
            || step_count || ' steps, so figures per token may be wrong; see nsys-insight steps'
    END AS tokens_misfit
FROM facts.step_method;
