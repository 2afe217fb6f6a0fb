-- The distinct symbols in internal.chain_rows, which may have hundreds of millions of frames.
CREATE OR REPLACE TABLE internal.chain_symbols AS
SELECT symbol, module, bool_and(coalesce(unresolved, 0) <> 0)::BIGINT AS unresolved
FROM internal.chain_rows
GROUP BY symbol, module;
