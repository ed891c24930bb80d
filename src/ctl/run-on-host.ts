import type { IncomingHttpHeaders } from 'node:http'
import { program } from '../base/program.ts'
import { oneLine } from './layout.ts'
import { type Ask, type Transport, createTransport } from './transport.ts'
import { createClient, type HostProgram } from './client.ts'
import type { CommandLine, CommandTable } from './command.ts'
import type { ExitName } from './exit-codes.ts'
import { configFolder } from './folder.ts'
import { createOutput, type Format, type Output } from './output.ts'
import { understand } from './reply.ts'
import { chooseTarget } from './target.ts'
import { createTerminal, readPaper } from './terminal.ts'

/**
 * Notice in a reply about the end of its part of the API; `undefined` where there is none.
 * `Deprecation` (RFC 9745) is a structured date, `@` and seconds since 1970; `Sunset` (RFC 8594) an HTTP date. A value in another form is
 * named without its date.
 * @param now milliseconds since 1970
 */
export function lifecycleNotice(
  { method, path }: Pick<Ask, 'method' | 'path'>,
  { deprecation, sunset, link }: IncomingHttpHeaders,
  now: number,
): string | undefined {
  if (deprecation === undefined && sunset === undefined) return undefined
  const deprecatedAt = dayOf(Number(/^@(-?\d{1,12})$/.exec(String(deprecation ?? '').trim())?.[1]) * 1_000)
  const endsAt = dayOf(Date.parse(String(sunset ?? '')))
  const parts = [
    ...(deprecation === undefined ? [] : [deprecationOf(deprecatedAt, now)]),
    ...(sunset === undefined ? [] : [`can go away ${endsAt === undefined ? 'soon' : `from ${endsAt} on`}`]),
  ]
  const target = linkOf(String(link ?? ''))
  // Some paths contain a token.
  const what = path.startsWith('/v1/auth/') ? 'a part of its API' : `${method} ${path.replace(/\?.*$/s, '')}`
  return oneLine(
    `${program.ctl}: warning: the ${program.noun} says that ${what} ${parts.join(' and ')}${target === undefined ? '' : `; see ${target}`}`,
  )
}

function deprecationOf(day: string | undefined, now: number): string {
  if (day === undefined) return 'is deprecated'
  return Date.parse(day) > now ? `will be deprecated on ${day}` : `is deprecated since ${day}`
}

/** The day, UTC; `undefined` for another text, or in a year that no day of ours is in. */
function dayOf(ms: number): string | undefined {
  const time = new Date(ms)
  const text = Number.isNaN(time.getTime()) ? '' : time.toISOString()
  return /^\d{4}-/.test(text) ? text.slice(0, 10) : undefined
}

/** The first link to a successor or an explanation (RFC 8288). */
function linkOf(header: string): string | undefined {
  const links = [...header.matchAll(/<([^<>]*)>((?:\s*;\s*[\w*-]+\s*(?:=\s*(?:"[^"]*"|[^\s,;"]+))?)*)/g)]
  const isOf = (parameters: string) =>
    (/;\s*rel\s*=\s*("[^"]*"|[^\s,;"]+)/i.exec(parameters)?.[1] ?? '')
      .replaceAll('"', '')
      .toLowerCase()
      .split(/\s+/)
      .some((rel) => ['successor-version', 'deprecation', 'sunset'].includes(rel))
  return links.find(([, , parameters = '']) => isOf(parameters))?.[1]
}

/** A transport that warns once, at the first reply from a part of the API that ends. */
export function warnOfLifecycle(transport: Transport, warn: (text: string) => void): Transport {
  let isWarned = false
  return {
    ...transport,
    async send(ask) {
      const reply = await transport.send(ask)
      const notice = isWarned ? undefined : lifecycleNotice(ask, reply.headers, Date.now())
      if (notice !== undefined) {
        isWarned = true
        warn(notice)
      }
      return reply
    },
  }
}

/** Runs a command that talks to a host. */
export async function runOnHost<Name extends string>(
  line: CommandLine<Name>,
  program: HostProgram<Name>,
  { protocol }: CommandTable,
  environment: NodeJS.ProcessEnv,
): Promise<ExitName | undefined> {
  const { options } = line
  const folder = () => configFolder(environment)
  const target = chooseTarget(options, environment, folder)
  const terminal = createTerminal()
  const output = createOutput({
    format: (options.output ?? 'table') as Format,
    paper: readPaper(environment, options['no-color'] !== undefined),
  })
  const transport = createTransport(target, {
    expected: options.fingerprint,
    ask: (question) => terminal.ask(question),
    say: output.note,
  })
  const watched = warnOfLifecycle(transport, output.note)
  const client = createClient({ target, transport: watched, user: options.user, protocol })
  try {
    return await program({ line, client, output: forReplies(output), target, terminal, protocol, folder })
  } finally {
    transport.close()
  }
}

/** Output for replies, whose fields are unchecked. */
const forReplies = (output: Output): Output => ({
  ...output,
  show: (reply, asText) => output.show(reply, (paper) => understand(() => asText(paper))),
})
