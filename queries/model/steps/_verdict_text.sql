/* parameters = ["words"] */
-- A verdict of `_verdict_of` as text: sync-bound; mixed: launch-bound, sync-bound.
CASE WHEN words[1] = 'mixed' THEN 'mixed: ' || array_to_string(words[2:], ', ') ELSE words[1] END;
