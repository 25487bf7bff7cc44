-- The directory's questions as Redis runs them: a script is one transaction, and nobody comes between.
--
-- The first argument names the question, the others are what it is given. What must hold: nothing is written
-- before all that could refuse was looked at; what takes something from somebody raises `changes`, and its
-- answer begins with the new count (0 if it was not raised).
--
--   plimsoll:state   hash: version of this layout, changes, probed (written to check that Redis takes writes), closed
--                    (why no server may use it), upgrading (the last complete step of an upgrade in progress),
--                    upgrades (their count)
--
-- All other keys begin with `plimsoll:{plimsoll:state}:`, which puts them into the hash slot of `plimsoll:state`:
--
--   names             hash: name -> id
--   account:ID        hash: id, name, hash, version, quota_bytes, quota_files ('' is none), permissions, enabled,
--                     created
--   session:NUMBER    hash: account, created, expires
--   sessions:ID       sorted set: the numbers of an account's sessions by `created`
--   session-ends      sorted set: the numbers of all sessions by `expires`
--   networks:ID       sorted set: hashes of networks that an account logged in from, by the time
--   network-ages      sorted set: ID:HASH of all networks, by the same time
--   share:ID          hash: id, owner, path, holder, writes, created, expires ('' is never)
--   given:ID, held:ID sorted sets: the ids of shares that an account gives, or has, by `expires`
--   share-ends        sorted set: the ids of all shares by `expires`
--   link:ID           hash: id, owner, path, uploads, created, expires ('' is never), password, secret, uses_max ('' is
--                     none), uses, bytes_max ('' is none), bytes
--   links:ID          sorted set: the ids of an account's links by `expires`
--   link-ends         sorted set: the ids of all links by `expires`
--   lock:ID           hash: id, owner, holder, path, shared, deep, about, created, expires
--   locks:ID          sorted set: the ids of the locks in an account's home by `expires`
--   taken:ID          sorted set: the ids of the locks that an account took by `expires`
--   lock-ends         sorted set: the ids of all locks by `expires`
--   between:ID:ID     sorted set: the paths that one shares with another, in the order of bytes
--   paths:ID:ID       hash: path -> the id of its share
--   upgrading         text: the token of the server that upgrades the directory

local VERSION = 5
-- What one sweep takes, so that it holds up nobody for long.
local SWEPT_MAX = 1000
-- Shares that are looked at at once for one that has not ended.
local LOOKED_AT = 100
-- Keys that one part of an upgrade moves.
local MOVED_AT_ONCE = 1000

local ask = {}

local PREFIX = 'plimsoll:{plimsoll:state}:'
local function key(...) return PREFIX .. table.concat({...}, ':') end
local function refuse(why) return redis.error_reply('PLIMSOLL ' .. why) end

local STATE, NAMES, LOCK = 'plimsoll:state', key('names'), key('upgrading')
local SESSION_ENDS, SHARE_ENDS, NETWORK_AGES = key('session-ends'), key('share-ends'), key('network-ages')
local LINK_ENDS, LOCK_ENDS = key('link-ends'), key('lock-ends')

local function raise() return redis.call('HINCRBY', STATE, 'changes', 1) end

local function record(id)
  if not id then return false end
  local fields = redis.call('HMGET', key('account', id), 'id', 'name', 'quota_bytes', 'quota_files',
    'permissions', 'enabled', 'created', 'hash', 'version')
  return fields[1] and fields
end

local function name_of(id) return redis.call('HGET', key('account', id), 'name') end

local function is_enabled(id) return redis.call('HGET', key('account', id), 'enabled') == '1' end

local function end_session(number, account)
  redis.call('DEL', key('session', number))
  redis.call('ZREM', key('sessions', account), number)
  redis.call('ZREM', SESSION_ENDS, number)
end

local function end_sessions(account, but)
  for _, number in ipairs(redis.call('ZRANGE', key('sessions', account), 0, -1)) do
    if number ~= but then end_session(number, account) end
  end
end

local function end_share(id)
  local found = redis.call('HMGET', key('share', id), 'owner', 'holder', 'path')
  local owner, holder, path = found[1], found[2], found[3]
  redis.call('DEL', key('share', id))
  redis.call('ZREM', key('given', owner), id)
  redis.call('ZREM', key('held', holder), id)
  redis.call('ZREM', SHARE_ENDS, id)
  redis.call('ZREM', key('between', owner, holder), path)
  redis.call('HDEL', key('paths', owner, holder), path)
end

local function set_end(share, expires)
  local at = expires == '' and '+inf' or expires
  redis.call('ZADD', key('given', share.owner), at, share.id)
  redis.call('ZADD', key('held', share.holder), at, share.id)
  redis.call('ZADD', SHARE_ENDS, at, share.id)
end

local function end_link(id)
  local owner = redis.call('HGET', key('link', id), 'owner')
  redis.call('DEL', key('link', id))
  redis.call('ZREM', key('links', owner), id)
  redis.call('ZREM', LINK_ENDS, id)
end

local function link(id)
  local fields = redis.call('HMGET', key('link', id), 'id', 'owner', 'path', 'uploads', 'created', 'expires', 'password',
    'secret', 'uses_max', 'uses', 'bytes_max', 'bytes')
  return fields[1] and fields
end

local function store_link(id, owner, path, uploads, created, expires, password, secret, uses_max, uses, bytes_max, bytes)
  redis.call('HSET', key('link', id), 'id', id, 'owner', owner, 'path', path, 'uploads', uploads, 'created', created,
    'expires', expires, 'password', password, 'secret', secret, 'uses_max', uses_max, 'uses', uses,
    'bytes_max', bytes_max, 'bytes', bytes)
  local at = expires == '' and '+inf' or expires
  redis.call('ZADD', key('links', owner), at, id)
  redis.call('ZADD', LINK_ENDS, at, id)
end

-- Whether a path is another one, or below it.
local function is_within(path, folder)
  return folder == '' or path == folder or string.sub(path, 1, #folder + 1) == folder .. '/'
end

local function lock(id)
  local fields = redis.call('HMGET', key('lock', id), 'id', 'owner', 'holder', 'path', 'shared', 'deep', 'about',
    'created', 'expires')
  return fields[1] and fields
end

local function set_lock_end(id, owner, holder, expires)
  redis.call('HSET', key('lock', id), 'expires', expires)
  redis.call('ZADD', key('locks', owner), expires, id)
  redis.call('ZADD', key('taken', holder), expires, id)
  redis.call('ZADD', LOCK_ENDS, expires, id)
end

local function store_lock(id, owner, holder, path, shared, deep, about, created, expires)
  redis.call('HSET', key('lock', id), 'id', id, 'owner', owner, 'holder', holder, 'path', path, 'shared', shared,
    'deep', deep, 'about', about, 'created', created)
  set_lock_end(id, owner, holder, expires)
end

local function end_lock(id)
  local found = redis.call('HMGET', key('lock', id), 'owner', 'holder')
  redis.call('DEL', key('lock', id))
  redis.call('ZREM', key('locks', found[1]), id)
  redis.call('ZREM', key('taken', found[2]), id)
  redis.call('ZREM', LOCK_ENDS, id)
end

local function forget_network(account, network)
  redis.call('ZREM', key('networks', account), network)
  redis.call('ZREM', NETWORK_AGES, account .. ':' .. network)
end

local function share(id)
  local fields = redis.call('HMGET', key('share', id), 'id', 'owner', 'path', 'holder', 'writes', 'created',
    'expires')
  fields[2], fields[4] = name_of(fields[2]), name_of(fields[4])
  return fields
end

local function holds(expires, now) return expires == '' or tonumber(expires) > tonumber(now) end

function ask.changes() return redis.call('HGET', STATE, 'changes') end

function ask.check_writable(now)
  redis.call('HSET', STATE, 'probed', now)
  return false
end

-- How many it took; it is asked again until that is none.
function ask.sweep(now, oldest)
  local networks = redis.call('ZRANGEBYSCORE', NETWORK_AGES, '-inf', oldest, 'LIMIT', 0, SWEPT_MAX)
  for _, member in ipairs(networks) do
    forget_network(string.match(member, '^(.-):(.*)$'))
  end
  local sessions = redis.call('ZRANGEBYSCORE', SESSION_ENDS, '-inf', now, 'LIMIT', 0, SWEPT_MAX)
  for _, number in ipairs(sessions) do
    end_session(number, redis.call('HGET', key('session', number), 'account') or '')
  end
  local shares = redis.call('ZRANGEBYSCORE', SHARE_ENDS, '-inf', now, 'LIMIT', 0, SWEPT_MAX)
  for _, id in ipairs(shares) do end_share(id) end
  local links = redis.call('ZRANGEBYSCORE', LINK_ENDS, '-inf', now, 'LIMIT', 0, SWEPT_MAX)
  for _, id in ipairs(links) do end_link(id) end
  local locks = redis.call('ZRANGEBYSCORE', LOCK_ENDS, '-inf', now, 'LIMIT', 0, SWEPT_MAX)
  for _, id in ipairs(locks) do end_lock(id) end
  return #sessions + #shares + #networks + #links + #locks
end

-- The caller draws the number, so that the number of an account that Redis has lost is never given again.
function ask.add_account(name, hash, quota_bytes, quota_files, permissions, enabled, created, id)
  if redis.call('HEXISTS', NAMES, name) == 1 then return false end
  if redis.call('EXISTS', key('account', id)) == 1 then
    return refuse('there is an account of the number ' .. id .. ' already')
  end
  redis.call('HSET', NAMES, name, id)
  redis.call('HSET', key('account', id), 'id', id, 'name', name, 'hash', hash, 'version', 1,
    'quota_bytes', quota_bytes, 'quota_files', quota_files, 'permissions', permissions, 'enabled', enabled, 'created', created)
  return record(id)
end

function ask.accounts()
  local found = {}
  for _, id in ipairs(redis.call('HVALS', NAMES)) do found[#found + 1] = record(id) end
  return found
end

function ask.account(name) return record(redis.call('HGET', NAMES, name)) end

function ask.account_of(id) return record(id) end

function ask.change(id, ...)
  if not record(id) then return false end
  redis.call('HSET', key('account', id), ...)
  if not is_enabled(id) then end_sessions(id) end
  return {raise(), record(id)}
end

function ask.remove_account(id)
  local name = name_of(id)
  if not name then return false end
  end_sessions(id)
  for _, network in ipairs(redis.call('ZRANGE', key('networks', id), 0, -1)) do forget_network(id, network) end
  for _, side in ipairs({'given', 'held'}) do
    for _, share_id in ipairs(redis.call('ZRANGE', key(side, id), 0, -1)) do end_share(share_id) end
  end
  for _, link_id in ipairs(redis.call('ZRANGE', key('links', id), 0, -1)) do end_link(link_id) end
  for _, side in ipairs({'locks', 'taken'}) do
    for _, lock_id in ipairs(redis.call('ZRANGE', key(side, id), 0, -1)) do end_lock(lock_id) end
  end
  redis.call('DEL', key('account', id))
  redis.call('HDEL', NAMES, name)
  return {raise()}
end

function ask.set_password(id, version, hash, but)
  if redis.call('HGET', key('account', id), 'version') ~= version then return false end
  redis.call('HSET', key('account', id), 'hash', hash)
  redis.call('HINCRBY', key('account', id), 'version', 1)
  end_sessions(id, but)
  return {raise()}
end

function ask.set_hash(id, version, hash)
  if redis.call('HGET', key('account', id), 'version') == version then
    redis.call('HSET', key('account', id), 'hash', hash)
  end
  return false
end

function ask.add_session(number, account, version, created, expires, max)
  if redis.call('HGET', key('account', account), 'version') ~= version then return false end
  if not is_enabled(account) then return false end
  redis.call('HSET', key('session', number), 'account', account, 'created', created, 'expires', expires)
  redis.call('ZADD', key('sessions', account), created, number)
  redis.call('ZADD', SESSION_ENDS, expires, number)
  local over = redis.call('ZCARD', key('sessions', account)) - tonumber(max)
  if over <= 0 then return {0, {}} end
  local ended = redis.call('ZRANGE', key('sessions', account), 0, over - 1)
  for _, old in ipairs(ended) do end_session(old, account) end
  return {raise(), ended}
end

function ask.session(number, now)
  local found = redis.call('HMGET', key('session', number), 'account', 'expires')
  if not found[1] or not holds(found[2], now) or not is_enabled(found[1]) then return false end
  local fields = record(found[1])
  fields[#fields + 1] = found[2]
  return fields
end

function ask.end_session(number)
  local account = redis.call('HGET', key('session', number), 'account')
  if not account then return false end
  end_session(number, account)
  return {raise()}
end

function ask.network_seen(account, network)
  return redis.call('ZSCORE', key('networks', account), network)
end

function ask.add_network(account, network, seen, max)
  if not name_of(account) then return false end
  local networks = key('networks', account)
  local before = redis.call('ZSCORE', networks, network)
  if not before or tonumber(before) < tonumber(seen) then
    redis.call('ZADD', networks, seen, network)
    redis.call('ZADD', NETWORK_AGES, seen, account .. ':' .. network)
  end
  local over = redis.call('ZCARD', networks) - tonumber(max)
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', networks, 0, over - 1)) do forget_network(account, old) end
  end
  return false
end

function ask.add_share(id, owner, holder, path, writes, created, expires, max)
  if not name_of(owner) or not name_of(holder) then return false end
  local given = key('given', owner)
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', given, '-inf', created)) do end_share(ended) end
  local known = redis.call('HGET', key('paths', owner, holder), path)
  if redis.call('ZCARD', given) - (known and 1 or 0) >= tonumber(max) then return false end
  if known then
    redis.call('HSET', key('share', known), 'writes', writes, 'expires', expires)
  else
    redis.call('HSET', key('share', id), 'id', id, 'owner', owner, 'path', path, 'holder', holder,
      'writes', writes, 'created', created, 'expires', expires)
    redis.call('ZADD', key('between', owner, holder), 0, path)
    redis.call('HSET', key('paths', owner, holder), path, id)
  end
  set_end({id = known or id, owner = owner, holder = holder}, expires)
  return {raise(), share(known or id)}
end

-- `side` is given or held; of those that are held, only what an enabled account gives.
function ask.shares(side, account, now)
  local found = {}
  for _, id in ipairs(redis.call('ZRANGE', key(side, account), 0, -1)) do
    local ends = redis.call('HMGET', key('share', id), 'expires', 'owner')
    if holds(ends[1], now) and (side == 'given' or is_enabled(ends[2])) then found[#found + 1] = share(id) end
  end
  return found
end

-- The first share at or after a path.
function ask.first_share(owner, holder, from, now)
  local between, paths, at = key('between', owner, holder), key('paths', owner, holder), 0
  while true do
    local found = redis.call('ZRANGEBYLEX', between, '[' .. from, '+', 'LIMIT', at, LOOKED_AT)
    if #found == 0 then return false end
    for _, path in ipairs(found) do
      local id = redis.call('HGET', paths, path)
      if holds(redis.call('HGET', key('share', id), 'expires'), now) then return share(id) end
    end
    at = at + #found
  end
end

function ask.end_share(owner, id)
  if redis.call('HGET', key('share', id), 'owner') ~= owner then return false end
  end_share(id)
  return {raise()}
end

function ask.end_shares(owner, path)
  local is_any = false
  for _, id in ipairs(redis.call('ZRANGE', key('given', owner), 0, -1)) do
    if is_within(redis.call('HGET', key('share', id), 'path'), path) then
      end_share(id)
      is_any = true
    end
  end
  for _, id in ipairs(redis.call('ZRANGE', key('links', owner), 0, -1)) do
    if is_within(redis.call('HGET', key('link', id), 'path'), path) then
      end_link(id)
      is_any = true
    end
  end
  return is_any and {raise()}
end

function ask.add_link(id, owner, path, uploads, created, expires, password, secret, uses_max, uses, bytes_max, bytes, max)
  if not name_of(owner) then return false end
  local links = key('links', owner)
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', links, '-inf', created)) do end_link(ended) end
  if redis.call('ZCARD', links) >= tonumber(max) then return false end
  store_link(id, owner, path, uploads, created, expires, password, secret, uses_max, uses, bytes_max, bytes)
  return 1
end

function ask.links(owner)
  local found = {}
  for _, id in ipairs(redis.call('ZRANGE', key('links', owner), 0, -1)) do found[#found + 1] = link(id) end
  return found
end

function ask.link(id) return link(id) end

function ask.use_link(id, bytes, now)
  local found = redis.call('HMGET', key('link', id), 'expires', 'uses_max', 'uses', 'bytes_max', 'bytes')
  if not found[1] or not holds(found[1], now) then return false end
  if found[2] ~= '' and tonumber(found[3]) >= tonumber(found[2]) then return false end
  if found[4] ~= '' and tonumber(found[5]) + tonumber(bytes) > tonumber(found[4]) then return false end
  -- The sum of bytes may overflow, and a script is not rolled back: it is first.
  redis.call('HINCRBY', key('link', id), 'bytes', bytes)
  redis.call('HINCRBY', key('link', id), 'uses', 1)
  return 1
end

function ask.end_link(owner, id)
  if redis.call('HGET', key('link', id), 'owner') ~= owner then return false end
  end_link(id)
  return {raise()}
end

function ask.add_lock(id, owner, holder, path, shared, deep, about, created, expires, most, most_of_others, most_met)
  if not name_of(owner) or not name_of(holder) then return false end
  local locks = key('locks', owner)
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', locks, '-inf', created)) do end_lock(ended) end
  local own, of_others, met = 0, 0, 0
  for _, other in ipairs(redis.call('ZRANGE', locks, 0, -1)) do
    local found = redis.call('HMGET', key('lock', other), 'path', 'shared', 'deep', 'holder')
    if found[1] == path or (found[3] == '1' and is_within(path, found[1])) or (deep == '1' and is_within(found[1], path)) then
      if found[2] ~= '1' or shared ~= '1' then return false end
      met = met + 1
    end
    if found[4] == holder then own = own + 1 end
    if found[4] ~= owner then of_others = of_others + 1 end
  end
  if own >= tonumber(most) or met >= tonumber(most_met) then return false end
  if owner ~= holder and of_others >= tonumber(most_of_others) then return false end
  store_lock(id, owner, holder, path, shared, deep, about, created, expires)
  return {raise()}
end

function ask.locks(owner)
  local found = {}
  for _, id in ipairs(redis.call('ZRANGE', key('locks', owner), 0, -1)) do found[#found + 1] = lock(id) end
  return found
end

function ask.find_lock(owner, id)
  local found = lock(id)
  return found and found[2] == owner and found
end

function ask.refresh_lock(owner, id, expires)
  local found = redis.call('HMGET', key('lock', id), 'owner', 'holder')
  if found[1] ~= owner then return false end
  set_lock_end(id, owner, found[2], expires)
  return {raise()}
end

function ask.end_locks(owner, ...)
  local is_any = false
  for _, id in ipairs({...}) do
    if redis.call('HGET', key('lock', id), 'owner') == owner then
      end_lock(id)
      is_any = true
    end
  end
  return is_any and {raise()}
end

-- Commands of an upgrade, which look at no version. `state` returns the version, and why the directory is closed.
local upgrade = {}

function upgrade.state()
  local state = redis.call('HMGET', STATE, 'upgrading', 'version', 'closed')
  return {state[1] or state[2] or '0', state[3] or ''}
end

-- Takes the lock for so many milliseconds: its token, or nothing if another server has it.
function upgrade.lock(time)
  if redis.call('EXISTS', LOCK) == 1 then return false end
  local token = tostring(redis.call('HINCRBY', STATE, 'upgrades', 1))
  redis.call('SET', LOCK, token, 'PX', time)
  return token
end

-- Keys of versions 1 and 2 have no hash tag, and are in a slot each.
local function move_to_one_slot(cursor)
  local found = redis.call('SCAN', cursor, 'MATCH', 'plimsoll:*', 'COUNT', MOVED_AT_ONCE)
  for _, old in ipairs(found[2]) do
    if old ~= STATE and string.sub(old, 1, #PREFIX) ~= PREFIX then
      redis.call('RENAME', old, PREFIX .. string.sub(old, #'plimsoll:' + 1))
    end
  end
  return found[1]
end

-- Takes a part of step `number`. Returns the position of the next part; 0 ends the step. The others made keys
-- that the other commands make when they need them.
function upgrade.step(token, time, number, position)
  if redis.call('GET', LOCK) ~= token then return refuse('another server upgrades the directory') end
  redis.call('PEXPIRE', LOCK, time)
  redis.call('HSET', STATE, 'version', VERSION, 'upgrading', tonumber(number) - 1)
  redis.call('HSETNX', STATE, 'changes', 0)
  if number == '3' then position = move_to_one_slot(position) end
  return position
end

function upgrade.unlock(token)
  if redis.call('GET', LOCK) ~= token then return refuse('another server upgrades the directory') end
  redis.call('HDEL', STATE, 'upgrading')
  redis.call('DEL', LOCK)
  return 1
end

-- Commands on the rows as they are stored, which are permitted in a closed directory. A command with a cursor returns
-- that of the next part first; 0 is the end.
local rows = {}

function rows.close(reason)
  redis.call('HSET', STATE, 'closed', reason)
  return false
end

function rows.stored_accounts(cursor, count)
  local found, part = redis.call('HSCAN', NAMES, cursor, 'COUNT', count), {}
  for at = 2, #found[2], 2 do
    part[#part + 1] = redis.call('HMGET', key('account', found[2][at]), 'id', 'name', 'hash', 'version',
      'quota_bytes', 'quota_files', 'permissions', 'enabled', 'created')
  end
  return {found[1], part}
end

-- Equal before and after a dump if no row was added, changed or ended meanwhile.
function rows.row_counts()
  return {redis.call('HGET', STATE, 'changes'), redis.call('HLEN', NAMES), redis.call('ZCARD', SESSION_ENDS),
    redis.call('ZCARD', SHARE_ENDS), redis.call('ZCARD', NETWORK_AGES), redis.call('ZCARD', LINK_ENDS),
    redis.call('ZCARD', LOCK_ENDS)}
end

-- The rows that accounts have, until there are `count`: for how many of the accounts, their sessions, the shares that
-- they give, their networks, their links and the locks in their homes. What one account has is of one moment.
function rows.stored_of(count, ...)
  local done, sessions, shares, networks, links, locks = 0, {}, {}, {}, {}, {}
  for _, id in ipairs({...}) do
    if #sessions + #shares + #networks + #links + #locks >= tonumber(count) then break end
    for _, number in ipairs(redis.call('ZRANGE', key('sessions', id), 0, -1)) do
      local found = redis.call('HMGET', key('session', number), 'account', 'created', 'expires')
      sessions[#sessions + 1] = {number, found[1], found[2], found[3]}
    end
    for _, share_id in ipairs(redis.call('ZRANGE', key('given', id), 0, -1)) do
      shares[#shares + 1] = redis.call('HMGET', key('share', share_id), 'id', 'owner', 'holder', 'path', 'writes',
        'created', 'expires')
    end
    local seen = redis.call('ZRANGE', key('networks', id), 0, -1, 'WITHSCORES')
    for at = 1, #seen, 2 do networks[#networks + 1] = {id, seen[at], seen[at + 1]} end
    for _, link_id in ipairs(redis.call('ZRANGE', key('links', id), 0, -1)) do links[#links + 1] = link(link_id) end
    for _, lock_id in ipairs(redis.call('ZRANGE', key('locks', id), 0, -1)) do locks[#locks + 1] = lock(lock_id) end
    done = done + 1
  end
  return {done, sessions, shares, networks, links, locks}
end

function rows.store_account(id, name, hash, version, quota_bytes, quota_files, permissions, enabled, created)
  if redis.call('HEXISTS', NAMES, name) == 1 then return refuse('there is an account ' .. name .. ' already') end
  redis.call('HSET', NAMES, name, id)
  redis.call('HSET', key('account', id), 'id', id, 'name', name, 'hash', hash, 'version', version,
    'quota_bytes', quota_bytes, 'quota_files', quota_files, 'permissions', permissions, 'enabled', enabled,
    'created', created)
  return false
end

function rows.store_session(number, account, created, expires)
  redis.call('HSET', key('session', number), 'account', account, 'created', created, 'expires', expires)
  redis.call('ZADD', key('sessions', account), created, number)
  redis.call('ZADD', SESSION_ENDS, expires, number)
  return false
end

function rows.store_share(id, owner, holder, path, writes, created, expires)
  redis.call('HSET', key('share', id), 'id', id, 'owner', owner, 'path', path, 'holder', holder,
    'writes', writes, 'created', created, 'expires', expires)
  redis.call('ZADD', key('between', owner, holder), 0, path)
  redis.call('HSET', key('paths', owner, holder), path, id)
  set_end({id = id, owner = owner, holder = holder}, expires)
  return false
end

function rows.store_network(account, network, seen)
  redis.call('ZADD', key('networks', account), seen, network)
  redis.call('ZADD', NETWORK_AGES, seen, account .. ':' .. network)
  return false
end

function rows.store_link(...)
  store_link(...)
  return false
end

function rows.store_lock(...)
  store_lock(...)
  return false
end

function rows.remove_rows(cursor)
  local found = redis.call('SCAN', cursor, 'MATCH', PREFIX .. '*', 'COUNT', MOVED_AT_ONCE)
  for _, old in ipairs(found[2]) do redis.call('DEL', old) end
  raise()
  return {found[1]}
end

-- In a cluster, an error while the slot is moved to another node: keys that are there already would seem to be missing.
redis.call('EXISTS', key('none'))
local question = table.remove(ARGV, 1)
if upgrade[question] then return upgrade[question](unpack(ARGV)) end
local state = redis.call('HMGET', STATE, 'version', 'upgrading', 'closed')
local version, closed = state[1], state[3]
if version and tonumber(version) > VERSION then
  return refuse('a newer plimsoll made the directory (version ' .. version .. ', this one knows ' .. VERSION
    .. '): start that one')
elseif version ~= tostring(VERSION) then
  return refuse('the directory is gone, or another one: Redis may have lost what it had; see to its data, '
    .. 'and start the server again')
elseif state[2] then
  return refuse('the directory is being upgraded; if no server does that, start one')
elseif rows[question] then
  return rows[question](unpack(ARGV))
elseif closed and closed ~= '' then
  return refuse('the directory is closed to servers: ' .. closed)
end
return ask[question](unpack(ARGV))
