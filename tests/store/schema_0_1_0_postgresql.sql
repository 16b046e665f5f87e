-- A database of 0.1.0 (revision 0002) with a few rows, as its own code wrote them. Never edited.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE FUNCTION public.horarium_id(id bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 1, 1)) - 1) / 2, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 1, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 2, 1)) - 1)) / 1 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 3, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 4, 1)) - 1)) / 8 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 4, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 5, 1)) - 1)) / 4 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 5, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 6, 1)) - 1)) / 2 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 6, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 7, 1)) - 1)) / 1 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 8, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 9, 1)) - 1)) / 8 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 9, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 10, 1)) - 1)) / 4 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 10, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 11, 1)) - 1)) / 2 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 11, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 12, 1)) - 1)) / 1 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 13, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 14, 1)) - 1)) / 8 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 14, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 15, 1)) - 1)) / 4 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 15, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 16, 1)) - 1)) / 2 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 16, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 17, 1)) - 1)) / 1 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 18, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 19, 1)) - 1)) / 8 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 19, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 20, 1)) - 1)) / 4 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 20, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 21, 1)) - 1)) / 2 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 21, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 22, 1)) - 1)) / 1 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 23, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 24, 1)) - 1)) / 8 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 24, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 25, 1)) - 1)) / 4 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 25, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 26, 1)) - 1)) / 2 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 26, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 27, 1)) - 1)) / 1 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 28, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 29, 1)) - 1)) / 8 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 29, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 30, 1)) - 1)) / 4 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 30, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 31, 1)) - 1)) / 2 % 32, 1) || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 31, 1)) - 1) * 16 + (strpos('0123456789ABCDEF', substr(upper(encode(id, 'hex')), 32, 1)) - 1)) / 1 % 32, 1) $$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.agents (
    namespace text NOT NULL,
    agent_id text NOT NULL,
    document text NOT NULL,
    version integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.approvals (
    approval_id bytea NOT NULL,
    namespace text NOT NULL,
    run_id bytea NOT NULL,
    input_hash text NOT NULL,
    gates text NOT NULL,
    decision text NOT NULL,
    decider text,
    reason text,
    modifications text,
    requested_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    decided_at bigint
);

CREATE TABLE public.assignments (
    namespace text NOT NULL,
    assignment_id text NOT NULL,
    document text NOT NULL,
    version integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE public.calendars (
    namespace text NOT NULL,
    name text NOT NULL,
    document text NOT NULL,
    version integer NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE public.checkpoints (
    schedule_uid bytea NOT NULL,
    sequence bigint NOT NULL,
    decided_until bigint NOT NULL,
    made_at bigint NOT NULL
);

CREATE TABLE public.counters (
    kind text NOT NULL,
    owner text NOT NULL,
    day integer NOT NULL,
    value bigint NOT NULL
);

CREATE TABLE public.facts (
    name text NOT NULL,
    value text NOT NULL
);

CREATE TABLE public.history (
    feed_id bigint NOT NULL,
    transaction_id bigint DEFAULT ((pg_current_xact_id())::text)::bigint,
    schedule_uid bytea NOT NULL,
    sequence bigint NOT NULL,
    namespace text NOT NULL,
    event_type text NOT NULL,
    recorded_at bigint NOT NULL,
    nominal bigint,
    nominal_last bigint,
    run_id bytea,
    payload text NOT NULL
);

CREATE SEQUENCE public.history_feed_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.history_feed_id_seq OWNED BY public.history.feed_id;

CREATE TABLE public.idempotency (
    namespace text NOT NULL,
    key text NOT NULL,
    request_hash text NOT NULL,
    status integer NOT NULL,
    answer text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE public.leases (
    name text NOT NULL,
    owner text NOT NULL,
    since bigint NOT NULL,
    beat_at bigint NOT NULL,
    until bigint,
    info text NOT NULL
);

CREATE TABLE public.namespaces (
    namespace text NOT NULL,
    description text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE public.plannings (
    planning bytea NOT NULL,
    text text NOT NULL
);

CREATE TABLE public.positions (
    schedule_uid bytea NOT NULL,
    namespace text NOT NULL,
    schedule_id text NOT NULL,
    status text NOT NULL,
    next_due bigint,
    decided_until bigint NOT NULL,
    generation integer NOT NULL,
    revision integer NOT NULL,
    planning bytea NOT NULL,
    next_sequence bigint NOT NULL,
    active integer NOT NULL,
    held integer NOT NULL,
    runs_born bigint NOT NULL,
    fires_count bigint NOT NULL,
    failures_count bigint NOT NULL,
    failures_in_a_row integer NOT NULL,
    skipped_count bigint NOT NULL,
    rotation_index bigint NOT NULL,
    last_fired_at bigint,
    last_run_id bytea,
    last_skip_reason text,
    last_skipped_at bigint,
    last_dispatch_status text,
    last_error text,
    last_error_at bigint,
    last_completed_at bigint,
    last_completed_run_id bytea,
    paused_at bigint,
    pause_reason text
)
WITH (fillfactor='70');

CREATE TABLE public.run_events (
    run_id bytea NOT NULL,
    sequence integer NOT NULL,
    event_type text NOT NULL,
    recorded_at bigint NOT NULL,
    payload text NOT NULL
);

CREATE TABLE public.runs (
    run_id bytea NOT NULL,
    namespace text NOT NULL,
    schedule_uid bytea,
    revision integer,
    workflow text,
    kind text NOT NULL,
    origin text NOT NULL,
    state text NOT NULL,
    nominal bigint NOT NULL,
    due bigint NOT NULL,
    ready_at bigint NOT NULL,
    deadline bigint,
    timeout_seconds integer NOT NULL,
    priority integer NOT NULL,
    queue text,
    delivery text NOT NULL,
    attempt integer NOT NULL,
    launches integer NOT NULL,
    busy_since bigint,
    lease_epoch integer NOT NULL,
    lease_owner text,
    lease_until bigint,
    reference text,
    needs_approval boolean NOT NULL,
    approval_id bytea,
    rotation_index integer,
    trigger_number bigint,
    covers_first bigint,
    covers_last bigint,
    covers_count bigint,
    concurrency_key text,
    assignee text,
    reserved bigint NOT NULL,
    external_key text,
    inputs text,
    result text,
    error text,
    error_class text,
    cause text,
    cost bigint NOT NULL,
    tokens bigint NOT NULL,
    tool_calls bigint NOT NULL,
    stop_requested_at bigint,
    parent_run_id bytea,
    root_run_id bytea,
    node_id text,
    next_event integer NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    CONSTRAINT runs_wait_for_approval CHECK (((NOT needs_approval) OR (approval_id IS NOT NULL) OR (state = ANY (ARRAY['awaiting_approval'::text, 'cancelled'::text, 'expired'::text, 'failed'::text, 'held'::text, 'launch_failed'::text, 'rejected'::text, 'skipped'::text, 'succeeded'::text, 'terminated'::text, 'timed_out'::text, 'unknown'::text]))))
);

CREATE TABLE public.schedule_attributes (
    schedule_uid bytea NOT NULL,
    namespace text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    value text NOT NULL
);

CREATE TABLE public.schedule_revisions (
    schedule_uid bytea NOT NULL,
    revision integer NOT NULL,
    generation integer NOT NULL,
    planning bytea NOT NULL,
    document text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE public.schedules (
    schedule_uid bytea NOT NULL,
    namespace text NOT NULL,
    schedule_id text NOT NULL,
    revision integer NOT NULL,
    version integer NOT NULL,
    name text NOT NULL,
    workflow text,
    source text NOT NULL,
    owner text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint
);

CREATE TABLE public.teams (
    namespace text NOT NULL,
    team_id text NOT NULL,
    document text NOT NULL,
    version integer NOT NULL,
    turn bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE public.tokens (
    token_id bytea NOT NULL,
    namespace text NOT NULL,
    sha256 text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    subject text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint
);

CREATE VIEW public.v_history AS
 SELECT h.namespace,
    s.schedule_id,
    h.sequence,
    h.event_type,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((h.recorded_at)::double precision * '00:00:00.000001'::interval)) AS recorded_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((h.nominal)::double precision * '00:00:00.000001'::interval)) AS nominal,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((h.nominal_last)::double precision * '00:00:00.000001'::interval)) AS nominal_last,
    public.horarium_id(h.run_id) AS run_id,
    h.payload,
    h.feed_id,
    public.horarium_id(h.schedule_uid) AS schedule_uid
   FROM (public.history h
     LEFT JOIN public.schedules s USING (schedule_uid));

CREATE VIEW public.v_runs AS
 SELECT r.namespace,
    s.schedule_id,
    r.state,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.nominal)::double precision * '00:00:00.000001'::interval)) AS nominal,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.due)::double precision * '00:00:00.000001'::interval)) AS due,
    r.origin,
    r.kind,
    public.horarium_id(r.run_id) AS run_id,
    r.revision,
    r.workflow,
    r.node_id,
    r.attempt,
    r.launches,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.ready_at)::double precision * '00:00:00.000001'::interval)) AS ready_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.deadline)::double precision * '00:00:00.000001'::interval)) AS deadline,
    r.priority,
    r.queue,
    r.delivery,
    r.lease_epoch,
    r.lease_owner,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.lease_until)::double precision * '00:00:00.000001'::interval)) AS lease_until,
    r.reference,
    r.needs_approval,
    public.horarium_id(r.approval_id) AS approval_id,
    r.rotation_index,
    r.trigger_number,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.covers_first)::double precision * '00:00:00.000001'::interval)) AS covers_first,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.covers_last)::double precision * '00:00:00.000001'::interval)) AS covers_last,
    r.covers_count,
    r.concurrency_key,
    r.assignee,
    r.external_key,
    r.inputs,
    r.result,
    r.error,
    r.error_class,
    r.cause,
    r.cost,
    r.tokens,
    r.tool_calls,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.stop_requested_at)::double precision * '00:00:00.000001'::interval)) AS stop_requested_at,
    public.horarium_id(r.parent_run_id) AS parent_run_id,
    public.horarium_id(r.root_run_id) AS root_run_id,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.created_at)::double precision * '00:00:00.000001'::interval)) AS created_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.started_at)::double precision * '00:00:00.000001'::interval)) AS started_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((r.finished_at)::double precision * '00:00:00.000001'::interval)) AS finished_at,
    public.horarium_id(r.schedule_uid) AS schedule_uid
   FROM (public.runs r
     LEFT JOIN public.schedules s USING (schedule_uid));

CREATE VIEW public.v_schedules AS
 SELECT s.namespace,
    s.schedule_id,
    s.name,
    p.status,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.next_due)::double precision * '00:00:00.000001'::interval)) AS next_due,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.decided_until)::double precision * '00:00:00.000001'::interval)) AS decided_until,
    s.revision,
    p.generation,
    s.version,
    s.workflow,
    s.source,
    s.owner,
    p.active,
    p.held,
    p.runs_born,
    p.fires_count,
    p.failures_count,
    p.failures_in_a_row,
    p.skipped_count,
    p.rotation_index,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.last_fired_at)::double precision * '00:00:00.000001'::interval)) AS last_fired_at,
    public.horarium_id(p.last_run_id) AS last_run_id,
    p.last_skip_reason,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.last_skipped_at)::double precision * '00:00:00.000001'::interval)) AS last_skipped_at,
    p.last_dispatch_status,
    p.last_error,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.last_error_at)::double precision * '00:00:00.000001'::interval)) AS last_error_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.last_completed_at)::double precision * '00:00:00.000001'::interval)) AS last_completed_at,
    public.horarium_id(p.last_completed_run_id) AS last_completed_run_id,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((p.paused_at)::double precision * '00:00:00.000001'::interval)) AS paused_at,
    p.pause_reason,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((s.created_at)::double precision * '00:00:00.000001'::interval)) AS created_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((s.updated_at)::double precision * '00:00:00.000001'::interval)) AS updated_at,
    ('1970-01-01 00:00:00+00'::timestamp with time zone + ((s.deleted_at)::double precision * '00:00:00.000001'::interval)) AS deleted_at,
    public.horarium_id(s.schedule_uid) AS schedule_uid
   FROM (public.schedules s
     JOIN public.positions p USING (schedule_uid));

CREATE TABLE public.workflows (
    namespace text NOT NULL,
    workflow_id text NOT NULL,
    version integer NOT NULL,
    document text NOT NULL,
    owner text,
    cycle text,
    created_at bigint NOT NULL
);

ALTER TABLE ONLY public.history ALTER COLUMN feed_id SET DEFAULT nextval('public.history_feed_id_seq'::regclass);

INSERT INTO public.alembic_version VALUES ('0002');

INSERT INTO public.facts VALUES ('tzdata', '2026.1');

INSERT INTO public.history VALUES (1, 758, '\x0195557eb00070008000000000000001', 1, 'default', 'ScheduleTriggered', 1772439300000000, 1772439300000000, 1772439300000000, '\x01a1e03c813174b280cbb2898daaf944', '{"outcome":"scheduled","trigger_number":1,"occurrence_time":"2026-03-02T08:15:00Z","origin":"scheduled","revision":1,"workflow_instance_id":"schedule:Morning-Report:1772439300","workflow_run_id":"01M7G3S09HEJS81JXJH66TNYA4","effective_overlap_policy":"skip"}');
INSERT INTO public.history VALUES (2, 760, '\x0195557eb00070008000000000000001', 2, 'default', 'ScheduleTriggered', 1772440200000000, 1772440200000000, 1772440200000000, '\x01a1e03c81647247b48e9e103bcc98cf', '{"outcome":"scheduled","trigger_number":2,"occurrence_time":"2026-03-02T08:30:00Z","origin":"scheduled","revision":1,"workflow_instance_id":"schedule:Morning-Report:1772440200","workflow_run_id":"01M7G3S0B4E93V93MY20XWS66F","effective_overlap_policy":"skip"}');

INSERT INTO public.namespaces VALUES ('default', '', 1772438400000000);

INSERT INTO public.plannings VALUES ('\x2abb46164f182f2565c70b7d78a9d7d5', '{"assignee":null,"budget":[null,null],"calendars":[],"catchup":["fire_once",100,null,60,60],"concurrency":[null,1],"condition":null,"delivery":"at_least_once","kind":"http","max_runs":null,"needs_approval":false,"overlap":["skip",null,null,30],"pause_on_failure":null,"priority":5000,"queue":null,"reserve":0,"rotation":0,"spec":{"at":[],"cron_expressions":["*/15 * * * *"],"dst_fold":"first","dst_gap":"next_valid","end_at":null,"intervals":[],"jitter_ms":0,"start_at":null,"timezone":"Europe/Berlin"},"timeout":3600,"workflow":null}');
INSERT INTO public.plannings VALUES ('\x3a8989018167900c8327b809f895b375', '{"assignee":null,"budget":[null,null],"calendars":[],"catchup":["fire_once",100,null,60,60],"concurrency":[null,1],"condition":null,"delivery":"at_least_once","kind":"workflow","max_runs":null,"needs_approval":false,"overlap":["skip",null,null,30],"pause_on_failure":null,"priority":0,"queue":null,"reserve":0,"rotation":0,"spec":{"at":[],"cron_expressions":[],"dst_fold":"first","dst_gap":"next_valid","end_at":null,"intervals":[{"every":"PT1H","offset":null}],"jitter_ms":0,"start_at":null,"timezone":null},"timeout":3600,"workflow":"nightly"}');
INSERT INTO public.plannings VALUES ('\x53769611f33c6c82fff549b391006f46', '{"assignee":null,"budget":[null,null],"calendars":[],"catchup":["fire_once",100,null,60,60],"concurrency":[null,1],"condition":null,"delivery":"at_least_once","kind":"http","max_runs":null,"needs_approval":false,"overlap":["skip",null,null,30],"pause_on_failure":null,"priority":0,"queue":null,"reserve":0,"rotation":0,"spec":{"at":[],"cron_expressions":["0 0 1 1 *"],"dst_fold":"first","dst_gap":"next_valid","end_at":null,"intervals":[],"jitter_ms":0,"start_at":null,"timezone":null},"timeout":3600,"workflow":null}');

INSERT INTO public.positions VALUES ('\x0195557eb00070008000000000000002', 'default', 'every-hour', 'paused', 1772442000000000, 1772438400000000, 1, 1, '\x3a8989018167900c8327b809f895b375', 1, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1772438400000000, 'a rest');
INSERT INTO public.positions VALUES ('\x0195557eb00070008000000000000001', 'default', 'Morning-Report', 'active', 1772441100000000, 1772440200000000, 1, 1, '\x2abb46164f182f2565c70b7d78a9d7d5', 3, 1, 0, 2, 2, 0, 0, 0, 0, 1772440200000000, '\x01a1e03c81647247b48e9e103bcc98cf', NULL, NULL, 'dispatched', NULL, NULL, NULL, NULL, NULL, NULL);

INSERT INTO public.run_events VALUES ('\x01a1e03c813174b280cbb2898daaf944', 3, 'WorkflowCompleted', 1772439360000000, '{}');

INSERT INTO public.runs VALUES ('\x01a1e03c813174b280cbb2898daaf944', 'default', '\x0195557eb00070008000000000000001', 1, NULL, 'http', 'scheduled', 'succeeded', 1772439300000000, 1772439300000000, 1772439300000000, NULL, 3600, 5000, NULL, 'at_least_once', 0, 0, NULL, 1, NULL, NULL, NULL, false, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, '{"sent":true}', NULL, NULL, NULL, 1500000, 0, 0, NULL, NULL, NULL, NULL, 4, 1772439300000000, 1772439300000001, 1772439360000000);
INSERT INTO public.runs VALUES ('\x01a1e03c81647247b48e9e103bcc98cf', 'default', '\x0195557eb00070008000000000000001', 1, NULL, 'http', 'scheduled', 'ready', 1772440200000000, 1772440200000000, 1772440200000000, NULL, 3600, 5000, NULL, 'at_least_once', 0, 0, NULL, 0, NULL, NULL, NULL, false, NULL, NULL, 2, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 3, 1772440200000000, NULL, NULL);
INSERT INTO public.runs VALUES ('\x0195557eb00070008000000000000005', 'default', '\x0195557eb00070008000000000000005', 1, NULL, 'http', 'api', 'ready', 1772438400000000, 1772438400000000, 1772438400000000, NULL, 60, -5000, NULL, 'at_least_once', 0, 0, NULL, 0, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 2, 1772438400000000, NULL, NULL);

INSERT INTO public.schedule_attributes VALUES ('\x0195557eb00070008000000000000001', 'default', 'label', 'team', 'blue');

INSERT INTO public.schedule_revisions VALUES ('\x0195557eb00070008000000000000001', 1, 1, '\x2abb46164f182f2565c70b7d78a9d7d5', '{"schedule_id":"Morning-Report","namespace":"default","name":"Été","labels":{"team":"blue"},"spec":{"cron_expressions":["*/15 * * * *"],"timezone":"Europe/Berlin"},"action":{"kind":"http","url":"https://example.org/hook","method":"POST","input":{"number":7}},"overlap_policy":"skip","priority":5000,"catchup_policy":"fire_once"}', 1772438400000000);
INSERT INTO public.schedule_revisions VALUES ('\x0195557eb00070008000000000000002', 1, 1, '\x3a8989018167900c8327b809f895b375', '{"schedule_id":"every-hour","namespace":"default","spec":{"intervals":[{"every":"PT1H"}]},"action":{"kind":"workflow","workflow_type":"nightly"},"overlap_policy":"skip","catchup_policy":"fire_once"}', 1772438400000000);
INSERT INTO public.schedule_revisions VALUES ('\x0195557eb00070008000000000000005', 1, 1, '\x53769611f33c6c82fff549b391006f46', '{"schedule_id": "by-a-program", "namespace": "default", "spec": {"cron_expressions": ["0 0 1 1 *"]}, "action": {"kind": "http", "url": "https://example.org/once", "method": "POST"}, "overlap_policy": "skip", "catchup_policy": "fire_once"}', 1772438400000000);

INSERT INTO public.schedules VALUES ('\x0195557eb00070008000000000000001', 'default', 'Morning-Report', 1, 1, 'Été', NULL, 'runtime', 'ada', 1772438400000000, 1772438400000000, NULL);
INSERT INTO public.schedules VALUES ('\x0195557eb00070008000000000000002', 'default', 'every-hour', 1, 1, '', 'nightly', 'runtime', 'ada', 1772438400000000, 1772438400000000, NULL);

INSERT INTO public.tokens VALUES ('\x0195557eb00070008000000000000009', 'default', '613908aa03a84766db1ab34bb4f9cfd0979f2e3ce4246cac25aeda92d5a83908', 'ci', 'admin', NULL, 1772438400000000, NULL, NULL, NULL);

SELECT pg_catalog.setval('public.history_feed_id_seq', 2, true);

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (namespace, agent_id);

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (approval_id);

ALTER TABLE ONLY public.assignments
    ADD CONSTRAINT assignments_pkey PRIMARY KEY (namespace, assignment_id);

ALTER TABLE ONLY public.calendars
    ADD CONSTRAINT calendars_pkey PRIMARY KEY (namespace, name);

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (schedule_uid);

ALTER TABLE ONLY public.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (kind, owner, day);

ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (feed_id);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (namespace, key);

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_pkey PRIMARY KEY (namespace);

ALTER TABLE ONLY public.plannings
    ADD CONSTRAINT plannings_pkey PRIMARY KEY (planning);

ALTER TABLE ONLY public.positions
    ADD CONSTRAINT positions_pkey PRIMARY KEY (schedule_uid);

ALTER TABLE ONLY public.run_events
    ADD CONSTRAINT run_events_pkey PRIMARY KEY (run_id, sequence);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY public.schedule_attributes
    ADD CONSTRAINT schedule_attributes_pkey PRIMARY KEY (schedule_uid, kind, name, value);

ALTER TABLE ONLY public.schedule_revisions
    ADD CONSTRAINT schedule_revisions_pkey PRIMARY KEY (schedule_uid, revision);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (schedule_uid);

ALTER TABLE ONLY public.teams
    ADD CONSTRAINT teams_pkey PRIMARY KEY (namespace, team_id);

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (token_id);

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_sha256_key UNIQUE (sha256);

ALTER TABLE ONLY public.workflows
    ADD CONSTRAINT workflows_pkey PRIMARY KEY (namespace, workflow_id, version);

CREATE INDEX approvals_by_run ON public.approvals USING btree (run_id);

CREATE INDEX approvals_inbox ON public.approvals USING btree (namespace, decision, requested_at);

CREATE INDEX approvals_pending ON public.approvals USING btree (expires_at) WHERE (decision = 'pending'::text);

CREATE INDEX history_feed ON public.history USING btree (namespace, transaction_id, feed_id);

CREATE UNIQUE INDEX history_in_order ON public.history USING btree (schedule_uid, sequence);

CREATE INDEX idempotency_by_age ON public.idempotency USING btree (created_at);

CREATE INDEX positions_at_rest ON public.positions USING btree (namespace, status) WHERE ((status <> 'active'::text) AND (status <> 'deleted'::text));

CREATE INDEX positions_due ON public.positions USING btree (next_due) WHERE (status = 'active'::text);

CREATE UNIQUE INDEX runs_by_callers_key ON public.runs USING btree (namespace, external_key) WHERE (external_key IS NOT NULL);

CREATE INDEX runs_by_namespace ON public.runs USING btree (namespace, run_id);

CREATE INDEX runs_by_schedule ON public.runs USING btree (schedule_uid, run_id);

CREATE INDEX runs_by_workflow ON public.runs USING btree (namespace, workflow, run_id) WHERE (workflow IS NOT NULL);

CREATE INDEX runs_held ON public.runs USING btree (schedule_uid, nominal) WHERE (state = 'held'::text);

CREATE INDEX runs_held_by_key ON public.runs USING btree (namespace, concurrency_key, nominal) WHERE (state = 'held'::text);

CREATE INDEX runs_leased ON public.runs USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE UNIQUE INDEX runs_one_per_occurrence ON public.runs USING btree (schedule_uid, nominal) WHERE (origin = ANY (ARRAY['scheduled'::text, 'backfill'::text]));

CREATE INDEX runs_open ON public.runs USING btree (schedule_uid) WHERE ((state = ANY (ARRAY['awaiting_approval'::text, 'held'::text, 'launching'::text, 'queued'::text, 'ready'::text, 'running'::text])) AND (parent_run_id IS NULL));

CREATE INDEX runs_queued ON public.runs USING btree (namespace, queue, run_id) WHERE (state = 'queued'::text);

CREATE INDEX runs_ready ON public.runs USING btree (priority DESC, ready_at, run_id) WHERE (state = 'ready'::text);

CREATE INDEX runs_steps ON public.runs USING btree (root_run_id) WHERE (root_run_id IS NOT NULL);

CREATE INDEX runs_timed ON public.runs USING btree (deadline) WHERE (state = ANY (ARRAY['launching'::text, 'queued'::text, 'running'::text]));

CREATE INDEX runs_to_stop ON public.runs USING btree (state, run_id) WHERE (stop_requested_at IS NOT NULL);

CREATE INDEX schedule_attributes_filter ON public.schedule_attributes USING btree (namespace, kind, name, value, schedule_uid);

CREATE INDEX schedules_by_creation ON public.schedules USING btree (namespace, created_at DESC, schedule_id);

CREATE INDEX schedules_by_id ON public.schedules USING btree (namespace, schedule_id, created_at);

CREATE INDEX schedules_by_owner ON public.schedules USING btree (namespace, owner, created_at);

CREATE INDEX schedules_by_source ON public.schedules USING btree (namespace, source, created_at) WHERE (source <> 'runtime'::text);

CREATE INDEX schedules_by_workflow ON public.schedules USING btree (namespace, workflow);

CREATE UNIQUE INDEX schedules_live_id ON public.schedules USING btree (namespace, schedule_id) WHERE (deleted_at IS NULL);

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(namespace);
