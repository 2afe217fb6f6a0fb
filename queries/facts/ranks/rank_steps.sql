INSERT INTO facts.rank_steps BY NAME FROM found
