-- A time in a sentence, in the unit that leaves three digits: 2.24 ms. time_text in nsys_insight/text/units.py follows
-- the same rule.
CREATE MACRO time_text(ns) AS CASE
    WHEN ns IS NULL THEN NULL
    WHEN abs(ns) < 999.5 THEN format('{:.3g} ns', ns::DOUBLE)
    WHEN abs(ns) < 999.5e3 THEN format('{:.3g} µs', ns / 1e3)
    WHEN abs(ns) < 999.5e6 THEN format('{:.3g} ms', ns / 1e6)
    WHEN abs(ns) < 999.5e9 THEN format('{:.3g} s', ns / 1e9)
    ELSE format('{:,} s', round(ns / 1e9)::BIGINT)
END;

-- A number in a sentence: 196; 0.03; 2.5.
CREATE MACRO count_text(number) AS CASE
    WHEN number IS NULL THEN NULL
    WHEN abs(number - round(number)) < 0.05 AND abs(number) >= 0.95 THEN format('{:,}', round(number)::BIGINT)
    WHEN abs(number) >= 0.95 THEN format('{:.1f}', number::DOUBLE)
    ELSE format('{:.2g}', number::DOUBLE)
END;

-- A number with its noun: 1 launch call; 196 launch calls; 3 copies.
CREATE MACRO counted_text(number, one, many := NULL) AS
    count_text(number) || ' ' || CASE count_text(number) WHEN '1' THEN one ELSE coalesce(many, one || 's') END;

-- An operation in a sentence: a kernel by the name of its function, any other operation by its full name.
CREATE MACRO operation_text(name) AS CASE WHEN name LIKE '%(%' THEN kernel_base_name(name) ELSE name END;

-- The numbers of the first late steps in brackets; empty if more than half of all steps are late.
CREATE MACRO late_steps_text(steps, all_steps) AS CASE
    WHEN 2 * len(steps) > all_steps THEN ''
    ELSE ' (' || array_to_string(steps[:8], ', ') || CASE WHEN len(steps) > 8 THEN ', …' ELSE '' END || ')'
END;

-- The value that all rows of a group have in common; NULL if they differ.
CREATE MACRO common_value(value) AS CASE WHEN min(value) = max(value) AND count(value) = count(*) THEN min(value) END;
