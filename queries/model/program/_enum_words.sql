CREATE VIEW _enum_words AS
FROM facts.enum_words;

COMMENT ON VIEW _enum_words IS
    'What the enum values of the trace mean, in words: from the file''s own tables, else as nsys documents them.';
COMMENT ON COLUMN _enum_words.enum IS
    'Which enum: copy kind, memory, launch type, memory event, stream type, severity, diagnostic source';
COMMENT ON COLUMN _enum_words.id IS 'The number in the trace';
COMMENT ON COLUMN _enum_words.word IS 'The word for it';
