-- A caller with at most so many frames, from there outwards: run (model.py) < main (model.py).
CREATE MACRO _stack_text(frames, most) AS array_to_string(frames[1:most], ' < ');
