/* parameters = ["frames", "most"] */
-- A stack as text, from the caller outwards, at most `most` frames: run (model.py) < main (model.py).
array_to_string(frames[1:most], ' < ');
