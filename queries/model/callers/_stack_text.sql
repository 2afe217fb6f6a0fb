-- A stack as text, from the caller outwards, at most `most` frames: run (model.py) < main (model.py).
CREATE MACRO _stack_text(frames, most) AS array_to_string(frames[1:most], ' < ');
