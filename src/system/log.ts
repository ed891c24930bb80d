import { pino, symbols, type DestinationStream, type Logger } from 'pino'

export type { Logger } from 'pino'

// journald reads the priority in angle brackets at the start of a line and stores the rest (sd-daemon(3)).
const priorities: Readonly<Record<number, string>> = {
  60: '<2>',
  50: '<3>',
  40: '<4>',
  30: '<6>',
  20: '<7>',
  10: '<7>',
}

const redactedPaths = [
  'authorization',
  'Authorization',
  'RefreshToken',
  'refreshToken',
  'password',
  'oldPassword',
  'newPassword',
  'token',
  'cookie',
].flatMap((name) => [name, `*.${name}`, `*.*.${name}`])

/**
 * An error as pino describes it, without bytes. Node adds the bytes of a request or a reply that it cannot parse to its error; they may
 * have a token, and the redaction cannot serialize bytes.
 */
function describeError(error: Error): Record<string, unknown> {
  const described: Record<string, unknown> = { ...pino.stdSerializers.err(error) }
  return Object.fromEntries(Object.entries(described).filter(([, value]) => !ArrayBuffer.isView(value)))
}

/**
 * The daemon's logger: JSON lines, each with its sd-daemon(3) priority in front.
 * @param level lowest level written
 * @param output destination of the lines; standard output by default
 */
export function createLog(
  level: string,
  output: DestinationStream = pino.destination({ dest: 1, sync: true }),
): Logger {
  const prefixed = {
    // pino sets lastLevel on streams that carry this symbol, before each write.
    [symbols.needsMetadataGsym]: true,
    lastLevel: 30,
    write(line: string) {
      output.write(`${priorities[this.lastLevel] ?? '<6>'}${line}`)
    },
  }
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      redact: { paths: redactedPaths, censor: '[redacted]' },
    },
    prefixed,
  )
}
