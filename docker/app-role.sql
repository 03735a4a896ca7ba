-- The role that the application uses. It owns nothing, so that it can neither drop the triggers that make the
-- tables of events append-only, nor switch them off, nor TRUNCATE around them. Run as the owner of the database.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'harnesslab_app') THEN
        CREATE ROLE harnesslab_app LOGIN;
    END IF;
END $$;
GRANT USAGE ON SCHEMA public TO harnesslab_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO harnesslab_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO harnesslab_app;
