import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Debian's firefox-esr; `make test-real` installs it. */
const program = '/usr/bin/firefox-esr'

export const hasFirefox = existsSync(program)

/** What is looked for: a role and a name as a screen reader has them, or a selector. */
type Sought = { readonly role: string; readonly name: string } | string

/** One page of Firefox, driven by WebDriver BiDi. Source: https://w3c.github.io/webdriver-bidi */
export interface FirefoxPage {
  open(url: string): Promise<void>
  /** Waits until something is there. */
  waitFor(sought: Sought): Promise<void>
  /** Focuses a field as a pointer does, and types into it. */
  fill(sought: Sought, text: string): Promise<void>
  click(sought: Sought): Promise<void>
  /** Chooses the file of a field. */
  choose(sought: Sought, file: string): Promise<void>
  /** Value of an expression in the page. */
  evaluate(expression: string): Promise<unknown>
  /** Errors of the page and of its policy, since the last call. */
  complaints(): string[]
  close(): Promise<void>
}

interface Answer {
  readonly id?: number
  readonly type: 'success' | 'error' | 'event'
  readonly result?: unknown
  readonly error?: string
  readonly message?: string
  readonly method?: string
  readonly params?: { readonly level: string; readonly text: string }
}

interface Node {
  readonly sharedId: string
}

const waitMs = 60_000
const enter = '\uE007'

/** The address of BiDi that a Firefox says on its standard error. */
async function addressOf(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) {
    const [, address] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? []
    if (address !== undefined) return address
  }
  throw new Error('firefox ended before it listened')
}

/** A connection to a Firefox. @param note takes its errors */
async function connect(address: string, note: (text: string) => void) {
  const socket = new WebSocket(`${address}/session`)
  await once(socket, 'open')
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    if (answer.params?.level === 'error') note(answer.params.text)
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  let last = 0
  const ask = async (method: string, params: object): Promise<unknown> => {
    last += 1
    const id = last
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params }))
    const { type, result, error, message } = await answered
    waiting.delete(id)
    if (type === 'error') throw new Error(`${method}: ${error}: ${message}`)
    return result
  }
  return { ask, close: () => socket.close() }
}

/** Starts a Firefox of its own with an empty profile. */
export async function openFirefox(): Promise<FirefoxPage> {
  const profile = await mkdtemp(join(tmpdir(), 'edgehostd-firefox-'))
  const args = ['--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile]
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: profile, LANG: 'C.UTF-8' },
  })
  const noted: string[] = []
  const lines = createInterface({ input: child.stderr })
  const { ask, close } = await connect(await addressOf(lines), (text) => noted.push(text))
  // What else it says is read, so that its pipe never fills.
  lines.on('line', () => undefined)
  child.stderr.resume()

  await ask('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } })
  await ask('session.subscribe', { events: ['log.entryAdded'] })
  const tree = (await ask('browsingContext.getTree', {})) as { contexts: { context: string }[] }
  const { context } = tree.contexts[0]!

  async function find(sought: Sought): Promise<Node> {
    const locator =
      typeof sought === 'string'
        ? { type: 'css', value: sought }
        : { type: 'accessibility', value: { role: sought.role, name: sought.name } }
    for (const end = Date.now() + waitMs; Date.now() < end;) {
      const { nodes } = (await ask('browsingContext.locateNodes', { context, locator })) as { nodes: Node[] }
      if (nodes[0]) return nodes[0]
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error(`not found within a minute: ${JSON.stringify(sought)}`)
  }

  const act = (type: string, id: string, actions: object[]) =>
    ask('input.performActions', { context, actions: [{ type, id, actions }] })

  const press = async (sought: Sought) => {
    const { sharedId } = await find(sought)
    const origin = { type: 'element', element: { sharedId } }
    await act('pointer', 'mouse', [
      { type: 'pointerMove', x: 0, y: 0, origin },
      { type: 'pointerDown', button: 0 },
      { type: 'pointerUp', button: 0 },
    ])
  }

  return {
    open: async (url) => {
      await ask('browsingContext.navigate', { context, url, wait: 'complete' })
    },
    waitFor: async (sought) => {
      await find(sought)
    },
    fill: async (sought, text) => {
      await press(sought)
      const keys = Array.from(text.replaceAll('\n', enter))
      await act(
        'key',
        'keyboard',
        keys.flatMap((value) => [
          { type: 'keyDown', value },
          { type: 'keyUp', value },
        ]),
      )
    },
    click: press,
    choose: async (sought, file) => {
      await ask('input.setFiles', { context, element: await find(sought), files: [file] })
    },
    evaluate: async (expression) => {
      const reply = await ask('script.evaluate', { expression, target: { context }, awaitPromise: true })
      const { type, result } = reply as { type: string; result: { value?: unknown } }
      if (type !== 'success') throw new Error(`${expression}: ${JSON.stringify(reply)}`)
      return result.value
    },
    complaints: () => noted.splice(0),
    close: async () => {
      close()
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
