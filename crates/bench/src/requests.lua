-- Sends the requests of the file BENCH_REQUESTS in turn to BENCH_PATH, with the application id
-- BENCH_APPLICATION. Each line has a session token (or nothing), a tab, and a JSON body. A request
-- without a body is a GET. Every host name leads to BENCH_ADDRESS.
local requests, at = {}, 0

wrk.resolve = function(_, port)
  wrk.addrs = wrk.lookup(os.getenv("BENCH_ADDRESS"), port)
end

init = function()
  for line in io.lines(os.getenv("BENCH_REQUESTS")) do
    local token, body = line:match("^([^\t]*)\t(.*)$")
    local headers = {
      ["Content-Type"] = "application/json",
      ["X-Backend-Application-Id"] = os.getenv("BENCH_APPLICATION"),
    }
    if token ~= "" then headers["X-Backend-Session-Token"] = token end
    local method = body == "" and "GET" or "POST"
    requests[#requests + 1] = wrk.format(method, os.getenv("BENCH_PATH"), headers, body)
  end
end

request = function()
  at = at % #requests + 1
  return requests[at]
end

done = function(summary, latency)
  local e = summary.errors
  print(string.format("RESULT %d %d %d %d %d", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
