/* parameters = ["kind", "function", "module"] */
-- A frame in an answer: an operator of PyTorch as aten::name, any other as function (module), one without a symbol as
-- its module.
CASE
    WHEN kind = 'operator' THEN 'aten::' || regexp_extract(function, '^at::_ops::(\w+)', 1)
    WHEN function IS NULL THEN coalesce(nullif(module, ''), '[Unknown]') || ' (no symbol)'
    WHEN kind = 'native' OR function LIKE '%.py%' OR coalesce(module, '') = '' THEN function
    ELSE function || ' (' || module || ')'
END;
