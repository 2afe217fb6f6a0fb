/*
description = """One row per request that NVTX ranges of phases name, or, where one sequence is decoded at a time, per
    prefill: when it began and when its tokens were done."""
[columns]
request = "Name of the request, as the ranges have it; else a number, from 1"
begins = """arrival: a range or a mark names it before its prefill; prefill: only its first prefill is known; NULL where
    neither is in the trace"""
start_ns = "When the request arrived, or its first prefill began: `begins` says which"
first_token_ns = "When the last prefill before its first decode was done; NULL where the trace does not have both"
last_token_ns = "When the last token in the trace was done"
tokens = "Tokens in the trace: one of the prefill, and one of each decode"
reason = "Why its first token, or all of its tokens, are unknown; NULL where all are known"
*/
SELECT * EXCLUDE (token_ns)
FROM facts.requests;
