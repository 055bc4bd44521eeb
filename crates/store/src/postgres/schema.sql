-- The tables and functions of a store. `{schema}` is the schema that the operator named.

create table {schema}.store (
    is_it boolean primary key default true check (is_it),
    format int not null,
    -- The id of the node that started last. Ids rise.
    last_node int not null default 0
);

-- The rows of `crates/store`: records, index entries and claims. `stamp` differs where the value differs, and
-- is 0 for an index entry.
create table {schema}.rows (
    key bytea primary key,
    stamp bigint not null,
    value bytea not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- Compression would cost more than it saves.
alter table {schema}.rows alter column value set storage external;

-- The processes that use this store. One whose time is over has ended, or cannot reach the database. One that is
-- alone has no other beside it. One that serves has filled its copy and may hold shards. One without a token was
-- given up. A token never comes twice, while an id may, after a failover that lost it.
create table {schema}.nodes (
    id int primary key,
    token text default gen_random_uuid()::text,
    name text not null,
    started timestamptz not null default now(),
    until timestamptz not null,
    alone boolean not null,
    serves boolean not null default false
);

-- Who acts for which ids. The epoch rises whenever a shard changes hands; node 0 is nobody.
create table {schema}.shards (
    shard smallint primary key,
    node int not null default 0,
    epoch bigint not null default 0
) with (fillfactor = 50);
insert into {schema}.shards (shard) select generate_series(0, 255);

-- What each node told last on a topic. A crash of the database may lose it.
create unlogged table {schema}.bulletins (
    node int not null,
    topic text not null,
    content bytea not null,
    primary key (node, topic)
) with (fillfactor = 50);

-- The keys of the rows that each batch wrote. The batches of a lane of a node are numbered without gaps. A
-- batch without keys stands for one that was given up. Readers know the batches that they have read by their
-- marks: a failover may lose a batch, and another one may get its number.
create table {schema}.feed (
    node int not null,
    lane smallint not null,
    seq bigint not null,
    mark bigint not null default (random() * 9e15)::bigint,
    keys bytea[] not null,
    at timestamptz not null default now(),
    primary key (node, lane, seq)
);
alter table {schema}.feed alter column keys set storage external;

-- Lists a process as a node. One that must be alone is not listed while another lives, none is while one lives that
-- is alone, and each gets the name of that one. Where one is alone, all others are given up.
create function {schema}.register(the_name text, alone boolean)
returns table (id int, token text, other text) language plpgsql as $$
declare
    next int;
    living text;
begin
    -- The lock of this row also keeps apart those who start at the same moment.
    update {schema}.store set last_node = last_node + 1 returning last_node into next;
    select format('%s on %s', n.id, n.name) into living
    from {schema}.nodes n
    where n.token is not null and n.until > now() and (n.alone or register.alone) limit 1;
    if found then
        return query select null::int, null::text, living;
        return;
    end if;
    if alone then
        -- First the lock, which waits for batches under way: they are in the copy of the new node, or not written.
        perform from {schema}.nodes n where n.token is not null for update;
        update {schema}.nodes n set token = null where n.token is not null;
    end if;
    return query insert into {schema}.nodes as n (id, name, until, alone)
        values (next, the_name, now() + interval '6 seconds', register.alone)
        returning n.id, n.token, null::text;
end
$$;

-- Says that a node lives for so long. False: it was given up. The standby need not know.
create function {schema}.beat(the_node int, the_token text, lives interval)
returns boolean language plpgsql as $$
begin
    perform set_config('synchronous_commit', 'local', true);
    update {schema}.nodes n set until = now() + lives where n.id = the_node and n.token = the_token;
    return found;
end
$$;

-- Lets a node take the shards of nodes that live no more, up to its fair share, and sets those free that it
-- gives. Whoever holds a shard may still write under its lease: it waits for that, and what comes later is
-- refused. Returns the shards that the node holds then, and one line without a shard: how many it should hold.
create function {schema}.hold(the_node int, the_token text, gives smallint[])
returns table (shard smallint, epoch bigint) language plpgsql set lock_timeout = '2s' as $$
declare
    share bigint;
    held bigint;
begin
    perform from {schema}.nodes n where n.id = the_node and n.token = the_token for key share;
    if not found then
        return;
    end if;
    update {schema}.nodes n set serves = true where n.id = the_node and not n.serves;
    update {schema}.shards s set node = 0, epoch = s.epoch + 1
    where s.shard = any(gives) and s.node = the_node;
    select ceil(256.0 / greatest(count(*), 1)) into share
    from {schema}.nodes n where n.token is not null and n.serves and n.until > now();
    select count(*) into held from {schema}.shards s where s.node = the_node;
    update {schema}.shards s set node = the_node, epoch = s.epoch + 1 where s.shard in (
        select f.shard from {schema}.shards f
        where not exists (
            select from {schema}.nodes n
            where n.id = f.node and n.token is not null and n.until > now()
        )
        order by f.shard limit greatest(share - held, 0) for update of f skip locked
    );
    return query select s.shard, s.epoch from {schema}.shards s where s.node = the_node
        union all select null, share;
end
$$;

-- Tells other nodes something, and returns what those that live told last.
create function {schema}.exchange(
    the_node int, the_token text, topics text[], contents bytea[]
) returns table (node int, topic text, content bytea) language plpgsql as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    insert into {schema}.bulletins as b (node, topic, content)
    select n.id, q.topic, q.content
    from unnest(topics, contents) as q(topic, content), {schema}.nodes n
    where n.id = the_node and n.token = the_token
    on conflict on constraint bulletins_pkey do update set content = excluded.content;
    return query select b.node, b.topic, b.content
    from {schema}.bulletins b join {schema}.nodes n on n.id = b.node
    where b.node <> the_node and n.token is not null and n.until > now();
end
$$;

-- Writes a batch. False: something that it depends on is not so, and nothing was written. All arrays of
-- keys are sorted, so that two batches wait for each other in one order.
--
-- Each statement sees what was committed before it. So the first one waits for others and locks, and those
-- after it see what others have committed meanwhile.
--
-- The rows of `read_keys` must be there with these stamps; `read_written` says which of them the batch
-- writes. Those of `absent` must not be there. `set_known` says of each row that is set whether it is there:
-- 0 not known, 1 no, 2 yes. The node must hold the shards of `lease_shards` in these epochs.
create function {schema}.apply_batch(
    the_node int, the_token text, the_lane smallint, the_seq bigint,
    read_keys bytea[], read_stamps bigint[], read_written boolean[],
    absent bytea[],
    set_keys bytea[], set_stamps bigint[], set_values bytea[], set_known smallint[],
    gone bytea[], lease_shards smallint[], lease_epochs bigint[]
) returns boolean language plpgsql
-- A plan that was made while the tables were small would go on to read them whole. To plan anew at each call would
-- take longer than the work.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set lock_timeout = '2s' as $$
declare
    found_rows bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'the role must have the transaction isolation "read committed"';
    end if;
    -- With a lock, so that a node that is given up meanwhile is so after this batch, or has not written it.
    perform from {schema}.nodes n where n.id = the_node and n.token = the_token for key share;
    if not found then
        raise exception 'node % was given up', the_node using errcode = 'SV001';
    end if;
    if cardinality(lease_shards) > 0 then
        -- With a lock, so that nobody takes a shard before this batch is written.
        select count(*) into found_rows
        from unnest(lease_shards, lease_epochs) as q(shard, epoch), lateral (
            select true from {schema}.shards s
            where s.shard = q.shard and s.node = the_node and s.epoch = q.epoch for share
        ) s;
        if found_rows <> cardinality(lease_shards) then
            raise exception 'node % no longer acts for these ids', the_node using errcode = 'SV003';
        end if;
    end if;
    if cardinality(read_keys) > 0 then
        select count(*) into found_rows
        from unnest(read_keys, read_stamps, read_written) as q(key, stamp, written)
        left join lateral (
            select true as locked from {schema}.rows r
            where q.written and r.key = q.key and r.stamp = q.stamp for no key update
        ) w on true
        left join lateral (
            select true as locked from {schema}.rows r
            where not q.written and r.key = q.key and r.stamp = q.stamp for share
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
    update {schema}.rows r set stamp = q.stamp, value = q.value
    from unnest(set_keys, set_stamps, set_values, set_known) as q(key, stamp, value, known)
    where q.known = 2 and r.key = q.key;
    insert into {schema}.rows (key, stamp, value)
    select q.key, q.stamp, q.value
    from unnest(set_keys, set_stamps, set_values, set_known) as q(key, stamp, value, known)
    where q.known = 1;
    insert into {schema}.rows (key, stamp, value)
    select q.key, q.stamp, q.value
    from unnest(set_keys, set_stamps, set_values, set_known) as q(key, stamp, value, known)
    where q.known = 0
    on conflict (key) do update set stamp = excluded.stamp, value = excluded.value;
    if cardinality(gone) > 0 then
        delete from {schema}.rows r using unnest(gone) as q(key) where r.key = q.key;
    end if;
    if cardinality(set_keys) + cardinality(gone) > 0 then
        insert into {schema}.feed (node, lane, seq, keys)
        values (the_node, the_lane, the_seq, set_keys || gone);
    end if;
    return true;
end
$$;

-- Whether a batch of which no answer came was written. If not, it never will be. It writes in both cases, so
-- that its answer waits for a standby that must have the batch.
create function {schema}.settle(the_node int, the_token text, the_lane smallint, the_seq bigint)
returns boolean language plpgsql set lock_timeout = '2s' as $$
declare
    is_written boolean;
begin
    perform from {schema}.nodes n where n.id = the_node and n.token = the_token for key share;
    if not found then
        raise exception 'node % was given up', the_node using errcode = 'SV001';
    end if;
    insert into {schema}.feed as f (node, lane, seq, keys) values (the_node, the_lane, the_seq, '{}')
    on conflict (node, lane, seq) do update set at = f.at
    returning cardinality(f.keys) > 0 into is_written;
    return is_written;
end
$$;

-- What was written after these heads of lanes, and by nodes after `newest`, as one snapshot: for each lane
-- its first and last batch after the head, and each row that was written, as it is now. One line without
-- either says that the node that asks was not given up.
create function {schema}.news(
    the_node int, the_token text,
    head_nodes int[], head_lanes smallint[], head_seqs bigint[], head_marks bigint[], newest int
) returns table (
    node int, lane smallint, first_seq bigint, last_seq bigint, last_mark bigint, key bytea, value bytea
) language plpgsql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
declare
    is_lost boolean;
    is_news boolean;
    behind bigint;
begin
    -- Nearly always there is nothing, so that is asked first.
    select n.id,
        exists (
            select from unnest(head_nodes, head_lanes, head_seqs, head_marks) as h(node, lane, seq, mark)
            where h.seq > 0 and not exists (
                select from {schema}.feed f
                where f.node = h.node and f.lane = h.lane and f.seq = h.seq and f.mark = h.mark
            )
        ),
        exists (select from {schema}.feed f where f.node > newest) or exists (
            select from unnest(head_nodes, head_lanes, head_seqs) as h(node, lane, seq), lateral (
                select from {schema}.feed f
                where f.node = h.node and f.lane = h.lane and f.seq > h.seq limit 1
            ) f
        )
    into news.node, is_lost, is_news
    from {schema}.nodes n where n.id = the_node and n.token = the_token;
    if is_lost then
        raise exception 'the database has lost changes, as a failover does, or the copy is too old'
            using errcode = 'SV002';
    end if;
    if not found then
        return;
    end if;
    return next;
    if not is_news then
        return;
    end if;
    select coalesce(sum(1 + cardinality(b.keys)), 0) into behind from (
        select f.keys from unnest(head_nodes, head_lanes, head_seqs) as h(node, lane, seq), lateral (
            select f.keys from {schema}.feed f
            where f.node = h.node and f.lane = h.lane and f.seq > h.seq limit 10001
        ) f limit 10001
    ) b;
    -- Whoever is so far behind fills its copy anew: that is read in parts, and this is not.
    if behind > 100000 then
        raise exception 'the copy is too far behind' using errcode = 'SV002';
    end if;
    return query
    with batches as materialized (
        select f.node, f.lane, f.seq, f.mark, f.keys
        from unnest(head_nodes, head_lanes, head_seqs) as h(node, lane, seq), lateral (
            select * from {schema}.feed b where b.node = h.node and b.lane = h.lane and b.seq > h.seq
        ) f
        union all
        select b.node, b.lane, b.seq, b.mark, b.keys from {schema}.feed b where b.node > newest
    )
    select b.node, b.lane, min(b.seq), max(b.seq), (array_agg(b.mark order by b.seq desc))[1],
        null::bytea, null::bytea
    from batches b group by b.node, b.lane
    union all
    select null, null, null, null, null, k.key, r.value
    from (select distinct unnest(b.keys) as key from batches b) k
    left join lateral (select w.value from {schema}.rows w where w.key = k.key) r on true;
end
$$;

-- Gives up nodes that are long silent, and removes what no node needs any more: the batches of nodes that were
-- given up long ago, and those whose successor is old. So the last batch that a node has read is there until it
-- is given up. The standby need not wait.
create function {schema}.trim(kept interval) returns void language plpgsql as $$
begin
    perform set_config('synchronous_commit', 'local', true);
    -- One with a batch under way is left for the next time.
    update {schema}.nodes n set token = null where n.id in (
        select o.id from {schema}.nodes o
        where o.until < now() - kept and o.token is not null for update skip locked
    );
    delete from {schema}.feed f using {schema}.nodes n
    where n.id = f.node and n.token is null and n.until < now() - 2 * kept;
    delete from {schema}.bulletins b where not exists (
        select from {schema}.nodes n where n.id = b.node and n.until > now() - kept
    );
    delete from {schema}.nodes n where n.token is null and n.until < now() - 2 * kept;
    delete from {schema}.feed f using {schema}.feed successor
    where successor.node = f.node and successor.lane = f.lane and successor.seq = f.seq + 1
        and successor.at < now() - 2 * kept;
end
$$;
