-- The tables and functions of a store. `{schema}` is the schema that the operator named.

create table {schema}.store (
    is_it boolean primary key default true check (is_it),
    format int not null,
    id uuid not null default gen_random_uuid(),
    -- The id of the node that started last. Ids rise, and no id comes twice.
    last_node int not null default 0
);

-- The rows of `crates/store`: records, index entries and claims. A row of an index has version 0, a claim
-- has version 1, a record has its own.
create table {schema}.rows (
    key bytea primary key,
    version bigint not null,
    value bytea not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- Compression would cost more than it saves.
alter table {schema}.rows alter column value set storage external;

-- The processes that serve this store. One whose time is over has ended, or cannot reach the database.
create table {schema}.nodes (
    id int primary key,
    name text not null,
    started timestamptz not null default now(),
    until timestamptz not null
);

-- Gives a process an id that no other has had, and lists it. One that must be alone gets none while another
-- lives, and the name of that one; those that no longer live can write no more.
create function {schema}.register(the_name text, alone boolean)
returns table (id int, other text) language plpgsql as $$
declare
    next int;
    living text;
begin
    -- The lock of this row also keeps apart those who start at the same moment.
    update {schema}.store set last_node = last_node + 1 returning last_node into next;
    if alone then
        select format('%s on %s', n.id, n.name) into living
        from {schema}.nodes n where n.until > now() limit 1;
        if found then
            return query select null::int, living;
            return;
        end if;
        delete from {schema}.nodes;
    end if;
    insert into {schema}.nodes (id, name, until) values (next, the_name, now() + interval '6 seconds');
    return query select next, null::text;
end
$$;

-- The keys of the rows that each batch wrote, in the order of each lane of each node. A batch without keys
-- stands for one that was given up.
create table {schema}.feed (
    node int not null,
    lane smallint not null,
    seq bigint not null,
    keys bytea[] not null,
    at timestamptz not null default now(),
    primary key (node, lane, seq)
);
alter table {schema}.feed alter column keys set storage external;

-- Writes a batch. False: something that it depends on is not so, and nothing was written. All arrays of
-- keys are sorted, so that two batches wait for each other in one order.
--
-- Each statement sees what was committed before it. So the first one waits for others and locks, and those
-- after it see what others have committed meanwhile.
--
-- `read_*` are the rows that must be there with these versions, and whether the batch writes them.
-- `absent` must not be there. `hows` says of each row what is known: 0 nothing, 1 it is not there, 2 it is.
create function {schema}.apply_batch(
    node int, lane smallint, seq bigint,
    read_keys bytea[], read_versions bigint[], read_written boolean[],
    absent bytea[],
    set_keys bytea[], set_versions bigint[], set_values bytea[], hows smallint[],
    gone bytea[]
) returns boolean language plpgsql
-- A plan that was made while the tables were small would go on to read them whole.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set lock_timeout = '2s' as $$
declare
    found_rows bigint;
begin
    if not exists (select from {schema}.nodes n where n.id = node) then
        raise exception 'node % is not known any more', node using errcode = 'SV001';
    end if;
    if cardinality(read_keys) > 0 then
        select count(*) into found_rows
        from unnest(read_keys, read_versions, read_written) as q(key, version, written)
        left join lateral (
            select true as locked from {schema}.rows r
            where q.written and r.key = q.key and r.version = q.version for no key update
        ) w on true
        left join lateral (
            select true as locked from {schema}.rows r
            where not q.written and r.key = q.key and r.version = q.version for share
        ) s on true
        where coalesce(w.locked, s.locked);
        if found_rows <> cardinality(read_keys) then
            return false;
        end if;
    end if;
    if exists (
        select from unnest(absent) as q(key), lateral (
            select from {schema}.rows r where r.key = q.key
        ) r
    ) then
        return false;
    end if;
    update {schema}.rows r set version = q.version, value = q.value
    from unnest(set_keys, set_versions, set_values, hows) as q(key, version, value, how)
    where q.how = 2 and r.key = q.key;
    insert into {schema}.rows (key, version, value)
    select q.key, q.version, q.value
    from unnest(set_keys, set_versions, set_values, hows) as q(key, version, value, how)
    where q.how = 1;
    insert into {schema}.rows (key, version, value)
    select q.key, q.version, q.value
    from unnest(set_keys, set_versions, set_values, hows) as q(key, version, value, how)
    where q.how = 0
    on conflict (key) do update set version = excluded.version, value = excluded.value;
    if cardinality(gone) > 0 then
        delete from {schema}.rows r using unnest(gone) as q(key) where r.key = q.key;
    end if;
    if cardinality(set_keys) + cardinality(gone) > 0 then
        insert into {schema}.feed (node, lane, seq, keys) values (node, lane, seq, set_keys || gone);
    end if;
    return true;
end
$$;

-- Whether a batch of which no answer came was written. If not, it never will be.
create function {schema}.settle(the_node int, the_lane smallint, the_seq bigint)
returns boolean language plpgsql set lock_timeout = '2s' as $$
begin
    insert into {schema}.feed (node, lane, seq, keys) values (the_node, the_lane, the_seq, '{}')
    on conflict do nothing;
    return (
        select cardinality(f.keys) > 0 from {schema}.feed f
        where f.node = the_node and f.lane = the_lane and f.seq = the_seq
    );
end
$$;

-- What was written after these heads of lanes, and by nodes after `newest`, as one snapshot: the new heads
-- (with the first number after the old one, so that a gap is seen), and each row that was written, as it is
-- now. One line says that the node that asks is known; none: it is not.
create function {schema}.news(
    me int, head_nodes int[], head_lanes smallint[], head_seqs bigint[], newest int
) returns table (node int, lane smallint, first bigint, last bigint, key bytea, value bytea)
language plpgsql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    return query
    with batches as materialized (
        select f.node, f.lane, f.seq, f.keys
        from unnest(head_nodes, head_lanes, head_seqs) as h(node, lane, seq), lateral (
            select * from {schema}.feed b where b.node = h.node and b.lane = h.lane and b.seq > h.seq
        ) f
        union all
        select b.node, b.lane, b.seq, b.keys from {schema}.feed b where b.node > newest
    )
    select n.id, null::smallint, null::bigint, null::bigint, null::bytea, null::bytea
    from {schema}.nodes n where n.id = me
    union all
    select b.node, b.lane, min(b.seq), max(b.seq), null, null from batches b group by b.node, b.lane
    union all
    select null, null, null, null, k.key, r.value
    from (select distinct unnest(b.keys) as key from batches b) k
    left join lateral (select w.value from {schema}.rows w where w.key = k.key) r on true;
end
$$;

-- Removes what no node needs any more: batches that every node has read, and nodes that are long silent.
create function {schema}.trim(kept interval) returns void language plpgsql as $$
begin
    delete from {schema}.nodes n where n.until < now() - kept;
    delete from {schema}.feed f
    where f.at < now() - kept and not exists (select from {schema}.nodes n where n.id = f.node);
    delete from {schema}.feed f using (
        select b.node, b.lane, max(b.seq) as last from {schema}.feed b group by b.node, b.lane
    ) l where f.node = l.node and f.lane = l.lane and f.seq < l.last and f.at < now() - kept;
end
$$;
