INSERT INTO facts.messages BY NAME SELECT *, $communicator AS communicator FROM new_rows
