-- The component that a command writes, for lists: of commands from before it is in the envelope alone.
ALTER TABLE commands ADD COLUMN name TEXT;
