CREATE VIEW requests AS
SELECT * EXCLUDE (token_ns)
FROM facts.requests;

COMMENT ON VIEW requests IS
    'One row per request that NVTX ranges of phases name, or, where one sequence is decoded at a time, per prefill: '
    'when it began and when its tokens were done.';
COMMENT ON COLUMN requests.request IS 'As the ranges name it; else its number, from 1';
COMMENT ON COLUMN requests.begins IS
    'arrival: a range or a mark names it before its prefill; prefill: only its first prefill is known; NULL where '
    'neither is in the trace';
COMMENT ON COLUMN requests.start_ns IS 'When it began, in that sense';
COMMENT ON COLUMN requests.first_token_ns IS
    'When the last prefill before its first decode was done; NULL where the trace does not have both';
COMMENT ON COLUMN requests.last_token_ns IS 'When its last token in the trace was done';
COMMENT ON COLUMN requests.tokens IS 'Tokens in the trace: one of the prefill, and one of each decode';
COMMENT ON COLUMN requests.reason IS 'Why its first token, or all of its tokens, are unknown; NULL where all are known';
