import { afterEach, describe, expect, it } from 'vitest'
import type { KubernetesClient, KubernetesObject, Resource } from '../../../src/kubernetes/client.ts'
import {
  createKubernetesClient,
  type KubernetesClientOptions,
} from '../../../src/kubernetes/create-client.ts'
import {
  startPlayedApiServer,
  type PlayedApiServer,
  type PlayedRequest,
} from '../../support/played-api-server.ts'

const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true }
const pod = (name: string, resourceVersion = '1', more: object = {}): KubernetesObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default', resourceVersion } },
  ...more,
})
const status = (code: number, reason: string, message: string) => ({
  ...{ apiVersion: 'v1', kind: 'Status', status: 'Failure', metadata: {} },
  ...{ code, reason, message },
})
const expired = status(410, 'Expired', 'too old resource version: 1 (208)')
const event = (type: string, object: object) => ({ type, object })
const bookmark = (resourceVersion: string) =>
  event('BOOKMARK', { kind: 'Pod', apiVersion: 'v1', metadata: { resourceVersion, creationTimestamp: null } })
const list = (items: readonly object[], resourceVersion = '1', next = '') => ({
  ...{ kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion, continue: next } },
  items: items.map((item) => ({ ...item, kind: undefined, apiVersion: undefined })),
})

const timing = {
  ...{ firstPauseMs: 5, longestPauseMs: 40, wellAfterMs: 1_000 },
  ...{ watchSeconds: 600, silenceMs: 60_000 },
}

const ends: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end()
})

async function start(
  play: (played: PlayedRequest) => void,
  options: Partial<KubernetesClientOptions> = {},
): Promise<{ server: PlayedApiServer; client: KubernetesClient; signal: AbortSignal }> {
  const server = await startPlayedApiServer(play)
  const client = createKubernetesClient({
    kubeconfig: server.kubeconfig,
    maximumBytes: 100_000,
    limits: { pageSize: 4, mostObjects: 20 },
    timing,
    ...options,
  })
  const ended = new AbortController()
  ends.push(
    () => server.stop(),
    () => client.close(),
    () => ended.abort(),
  )
  return { server, client, signal: ended.signal }
}

const until = (condition: () => boolean) =>
  expect.poll(condition, { timeout: 60_000, interval: 2 }).toBe(true)

function watch(client: KubernetesClient, signal: AbortSignal) {
  const seen: string[] = []
  const watched = client.watch(pods, {
    signal,
    onChange: () => seen.push((watched.current() ?? []).map(({ metadata }) => metadata.name).join()),
  })
  return { seen, ...watched }
}

describe('a request', () => {
  it('ends in time where the reply does not come, or does not end', async () => {
    const { client } = await start(
      ({ url, response }) => {
        if (url.pathname === '/version') response.writeHead(200).write('{"gitVersion":')
      },
      { timeoutMs: 100 },
    )
    const error = {
      status: 0,
      reason: 'Timeout',
      message: expect.stringMatching(/^https:.* does not reply in time$/),
    }
    await expect(client.list(pods)).rejects.toMatchObject(error)
    await expect(client.version()).rejects.toMatchObject(error)
  })

  it('ends with its signal, before and after the reply begins', async () => {
    const stop = new AbortController()
    const { client, server } = await start(({ response }) => response.writeHead(200).write('{'))
    const version = client.version(stop.signal)
    await until(() => server.asked.length === 1)
    stop.abort()
    await expect(version).rejects.toMatchObject({ status: 0, reason: 'Aborted' })
    await expect(client.version(stop.signal)).rejects.toMatchObject({ reason: 'Aborted' })
    expect(server.asked).toHaveLength(1)
  })

  it('is refused where there is no server, no kubeconfig, and no server with the certificate of the kubeconfig', async () => {
    const { client, server } = await start(({ json }) => json({ gitVersion: 'v1' }))
    const other = await start(({ json }) => json({ gitVersion: 'v1' }))
    const port = /127\.0\.0\.1:\d+/
    const elsewhere = async () =>
      (await server.kubeconfig()).replace(port, port.exec(await other.server.kubeconfig())![0])
    const { client: mistaken } = await start(() => undefined, { kubeconfig: elsewhere })
    await expect(mistaken.version()).rejects.toMatchObject({
      ...{ status: 0, reason: 'Unreachable' },
      message: expect.stringMatching(/cannot be reached: .*certificate/),
    })
    expect(other.server.asked).toEqual([])

    await server.stop()
    await expect(client.version()).rejects.toMatchObject({
      ...{ status: 0, reason: 'Unreachable' },
      message: expect.stringMatching(/^https:\/\/127.0.0.1:\d+ cannot be reached: connect ECONNREFUSED/),
    })
    const { client: without } = await start(() => undefined, {
      kubeconfig: () => Promise.reject(new Error('ENOENT: no such file')),
    })
    await expect(without.version()).rejects.toMatchObject({
      reason: 'Unreachable',
      message: expect.stringMatching(/ENOENT/),
    })
    expect(await without.isReady()).toBe(false)
  })

  it('uses a kept connection again, and is sent again when that was closed meanwhile', async () => {
    let isCutting = false
    const { client, server } = await start(({ json }) => {
      // As a server does that closes an idle connection while a request is on its way.
      if (isCutting && server.connections() === 1) server.cut()
      else json({ gitVersion: 'v1' })
    })
    for (let times = 0; times < 5; times += 1) await client.version()
    expect(server.connections()).toBe(1)
    isCutting = true
    expect(await client.version()).toBe('v1')
    expect(server.connections()).toBe(2)
    expect(server.asked).toHaveLength(7)
  })

  it('is sent over at most two connections at once', async () => {
    let most = 0
    let open = 0
    const { client } = await start(({ json }) => {
      most = Math.max(most, (open += 1))
      setTimeout(() => {
        open -= 1
        json({ gitVersion: 'v1' })
      }, 5)
    })
    await Promise.all(Array.from({ length: 20 }, () => client.version()))
    expect(most).toBe(2)
  })

  it('that is put off is sent again after the time that the API server says', async () => {
    let times = 0
    const { client } = await start(({ json, response }) => {
      times += 1
      response.setHeader('retry-after', times === 1 ? '1' : '3600')
      if (times === 2) json({ gitVersion: 'v1' })
      else json(status(429, 'TooManyRequests', 'later'), 429)
    })
    expect(await client.version()).toBe('v1')
    expect(times).toBe(2)
    // Too long to wait within a request.
    await expect(client.version()).rejects.toMatchObject({ status: 429, reason: 'TooManyRequests' })
  })

  it.each<[string, string, (played: PlayedRequest) => void]>([
    ['text', 'InvalidReply', ({ response }) => response.end('hello')],
    ['other JSON', 'InvalidReply', ({ json }) => json([])],
    ['an error without a Status', 'Unknown', ({ response }) => response.writeHead(502).end('bad gateway')],
    ['a redirection', 'Unknown', ({ response }) => response.writeHead(302, { location: '/' }).end()],
    ['no HTTP', 'Unreachable', ({ request }) => request.socket.end('hello\r\n\r\n')],
    ['too much', 'TooLarge', ({ response }) => flood(response)],
  ])('is refused where the reply is %s', async (_, reason, play) => {
    const { client } = await start(play)
    await expect(client.version()).rejects.toMatchObject({ name: 'KubernetesError', reason })
  })
})

/** Writes without an end, as long as it is read. */
function flood(response: PlayedRequest['response'], piece = Buffer.alloc(64 * 1024, 0x20)): void {
  const write = () => {
    let isTaken = true
    while (isTaken) isTaken = response.write(piece) && response.writable
  }
  response.on('drain', write)
  write()
}

describe('a list', () => {
  it('is begun anew when the API server has forgotten its first page', async () => {
    let times = 0
    const { client, server } = await start(({ url, json }) => {
      if (!url.searchParams.has('continue')) json(list([pod('a')], '1', `next-${(times += 1)}`))
      else if (url.searchParams.get('continue') === 'next-3') json(list([pod('b')], '3'))
      else json(expired, 410)
    })
    expect((await client.list(pods)).map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
    expect(server.asked).toHaveLength(6)
  })

  it('gives up where the API server forgets its first page again and again', async () => {
    const { client } = await start(({ url, json }) =>
      url.searchParams.has('continue') ? json(expired, 410) : json(list([pod('a')], '1', 'next')),
    )
    await expect(client.list(pods)).rejects.toMatchObject({ status: 410, reason: 'Expired' })
  })

  it('asks for fewer objects where a page is too large, and gives up at one', async () => {
    const sizes: string[] = []
    let most = 1
    const { client } = await start(({ url, json, response }) => {
      const size = Number(url.searchParams.get('limit'))
      sizes.push(String(size))
      if (size > most) flood(response)
      else json(list([pod(`p${sizes.length}`)], '1', sizes.length < 5 ? 'next' : ''))
    })
    expect(await client.list(pods)).toHaveLength(3)
    expect(sizes.join()).toBe('4,2,1,1,1')
    most = 0
    await expect(client.list(pods)).rejects.toMatchObject({ reason: 'TooLarge' })
  })

  it('of more objects than are held is refused', async () => {
    const { client } = await start(({ json }) =>
      json(
        list(
          Array.from({ length: 4 }, (_, index) => pod(`p${index}`)),
          '1',
          'next',
        ),
      ),
    )
    await expect(client.list(pods)).rejects.toMatchObject({
      ...{ reason: 'TooLarge', message: 'there are more than 20 pods' },
    })
  })

  it('is empty where its items are null, as those of a list of the metadata of no object', async () => {
    const metadata = { resourceVersion: '1' }
    const kind = 'PartialObjectMetadataList'
    const { client } = await start(({ json }) =>
      json({ apiVersion: 'meta.k8s.io/v1', kind, metadata, items: null }),
    )
    expect(await client.list(pods, { isMetadataOnly: true })).toEqual([])
  })

  it.each([
    [{}],
    [{ metadata: { resourceVersion: '1' } }],
    [{ items: [], metadata: {} }],
    [{ items: [null], metadata: { resourceVersion: '1' } }],
    [[]],
  ])('is not understood where it is %j', async (reply) => {
    const { client } = await start(({ json }) => json(reply))
    await expect(client.list(pods)).rejects.toMatchObject({ reason: 'InvalidReply' })
  })
})

describe('the last lines of a container', () => {
  it('are read as text', async () => {
    const { client, server } = await start(({ response }) => response.end('one\ntwo\n'))
    const options = { container: 'a', isPrevious: true, tailLines: 20, limitBytes: 4_096 }
    expect(await client.logs({ name: 'web-1', namespace: 'shop' }, options)).toBe('one\ntwo\n')
    expect(server.asked).toEqual([
      'GET /api/v1/namespaces/shop/pods/web-1/log?container=a&previous=true&tailLines=20&limitBytes=4096',
    ])
  })
})

describe('a watch', () => {
  /** Answers lists by the first function, and watches from the version of the list by the second. */
  const play =
    (onList: (played: PlayedRequest) => void, onWatch: (from: string, played: PlayedRequest) => void) =>
    (played: PlayedRequest) => {
      const { searchParams } = played.url
      if (searchParams.has('watch')) onWatch(searchParams.get('resourceVersion') ?? '', played)
      else onList(played)
    }

  it('asks for bookmarks and continues from the last one, without a new list', async () => {
    const from: string[] = []
    const { client, server, signal } = await start(
      play(
        ({ json }) => json(list([pod('a')], '10')),
        (version, { lines, response, url }) => {
          from.push(version)
          expect(url.searchParams.get('allowWatchBookmarks')).toBe('true')
          if (from.length === 1) lines(event('ADDED', pod('b', '11')), bookmark('17'))
          if (from.length === 2) lines(event('DELETED', pod('a', '18')))
          if (from.length <= 2) response.end()
        },
      ),
    )
    const { seen, problem } = watch(client, signal)
    await until(() => from.length === 3)
    expect(from).toEqual(['10', '17', '18'])
    expect(seen).toEqual(['a', 'a,b', 'b'])
    expect(server.asked.filter((asked) => !asked.includes('watch'))).toHaveLength(1)
    await until(() => problem() === undefined)
  })

  it('tells changes that arrive together once, and a bookmark not at all', async () => {
    const { client, signal } = await start(
      play(
        ({ json }) => json(list([], '1')),
        (_, { response }) => {
          const events = [event('ADDED', pod('a', '2')), event('ADDED', pod('b', '3')), bookmark('4')]
          response.write(events.map((each) => `${JSON.stringify(each)}\n`).join(''))
        },
      ),
    )
    const { seen } = watch(client, signal)
    await until(() => seen.includes('a,b'))
    expect(seen).toEqual(['', 'a,b'])
  })

  it.each<[string, (played: PlayedRequest) => void]>([
    ['an event', ({ lines }) => lines(event('ADDED', pod('b', '2')), event('ERROR', expired))],
    ['its reply', ({ json }) => json(expired, 410)],
    ['a line that is not understood', ({ response }) => response.write('{"type":"ADDED"}\n')],
    ['a line without an end', ({ response }) => flood(response)],
  ])('lists again, with pauses that grow, where %s says that it cannot continue', async (_, refuse) => {
    let lists = 0
    const { client, signal } = await start(
      play(
        ({ json }) => json(list([pod(`p${(lists += 1)}`)], '1')),
        (_from, played) => (lists < 3 ? refuse(played) : played.lines(event('ADDED', pod('last', '2')))),
      ),
    )
    const { seen, problem } = watch(client, signal)
    await until(() => seen.at(-1) === 'p3,last')
    expect(lists).toBe(3)
    expect(problem()).toBeUndefined()
  })

  it('says what is wrong, keeps its picture, and lists not again while the API server is away', async () => {
    let isAway = false
    let lists = 0
    const { client, server, signal } = await start(
      play(
        ({ json }) => {
          lists += 1
          json(list([pod('a')], '10'))
        },
        (_, { json, lines }) =>
          isAway ? json(status(503, 'ServiceUnavailable', 'starting'), 503) : lines(bookmark('11')),
      ),
    )
    const { current, problem } = watch(client, signal)
    await until(() => server.asked.length === 2)
    isAway = true
    server.cut()
    await until(() => problem() === 'starting')
    expect(current()).toHaveLength(1)
    const before = server.asked.length
    isAway = false
    await until(() => problem() === undefined && server.asked.length > before)
    expect(lists).toBe(1)
  })

  it('is begun anew after a silence', async () => {
    const from: string[] = []
    const { client, signal } = await start(
      play(
        ({ json }) => json(list([], '1')),
        (version, { lines }) => {
          from.push(version)
          lines(bookmark(String(10 * from.length)))
        },
      ),
      { timing: { ...timing, silenceMs: 500 } },
    )
    const { problem } = watch(client, signal)
    await until(() => problem() === 'the API server has been silent for too long')
    await until(() => from.length >= 3)
    expect(from.slice(0, 3)).toEqual(['1', '10', '20'])
  })

  it('continues as long as bookmarks come', async () => {
    let written = 0
    const { client, server, signal } = await start(
      play(
        ({ json }) => json(list([], '1')),
        (_, { lines, response }) => {
          const timer = setInterval(() => lines(bookmark(String((written += 1)))), 20)
          response.once('close', () => clearInterval(timer))
        },
      ),
      { timing: { ...timing, silenceMs: 400 } },
    )
    watch(client, signal)
    await until(() => written >= 40)
    expect(server.asked).toHaveLength(2)
  })

  it('asks less and less often while the API server does not answer', async () => {
    const times: number[] = []
    const { signal, client } = await start(({ request }) => {
      times.push(performance.now())
      request.socket.destroy()
    })
    const { current, problem } = watch(client, signal)
    await until(() => times.length >= 6)
    expect(problem()).toMatch(/cannot be reached/)
    expect(current()).toBeUndefined()
    // 5 ms doubled three times is the longest, 40 ms; a pause is at least half of that.
    expect(times[5]! - times[4]!).toBeGreaterThanOrEqual(20)
  })

  it('lists less and less often where each list takes long and is of no use', async () => {
    const times: number[] = []
    const { client, signal } = await start(
      play(
        ({ json }) => {
          times.push(performance.now())
          setTimeout(() => json(list([pod('a')], '1')), 60)
        },
        (_, { json }) => json(expired, 410),
      ),
      { timing: { ...timing, longestPauseMs: 640, wellAfterMs: 50 } },
    )
    watch(client, signal)
    await until(() => times.length >= 9)
    // At least half of the longest pause.
    expect(times[8]! - times[7]!).toBeGreaterThanOrEqual(320)
  })

  it('ends with its signal, and asks no more', async () => {
    const stop = new AbortController()
    let isClosed = false
    const { client, server } = await start(
      play(
        ({ url, json }) => json(url.pathname === '/version' ? { gitVersion: 'v1' } : list([], '1')),
        (_, { response }) => response.once('close', () => (isClosed = true)),
      ),
    )
    const { seen } = watch(client, stop.signal)
    await until(() => server.asked.length === 2)
    stop.abort()
    await until(() => isClosed)
    // Each takes a while: together longer than the first pauses.
    for (let times = 0; times < 50; times += 1) await client.version()
    expect(server.asked.filter((asked) => asked !== 'GET /version')).toHaveLength(2)
    expect(seen).toEqual([''])
  })
})
