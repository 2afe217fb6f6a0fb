/*
description = "The words of `_enum_words` for copies, as maps from the number to the word. One row."
stored = true
[columns]
kinds = "The words for copy kinds"
memories = "The words for memories"
causes = "The words for causes of migration"
*/
-- A dozen queries of a diagnosis read copies. Four joins with the table of words would be planned in each of them, and
-- run for each copy, also where no word is read.
SELECT
    map_from_entries(list((id, word)) FILTER (enum = 'copy kind')) AS kinds,
    map_from_entries(list((id, word)) FILTER (enum = 'memory')) AS memories,
    map_from_entries(list((id, word)) FILTER (enum = 'migration')) AS causes
FROM facts.enum_words
WHERE id IS NOT NULL;
