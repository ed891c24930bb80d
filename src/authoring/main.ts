import { parseArgs } from 'node:util'
import { exitCodes, Failure, type ExitName } from '../ctl/exit-codes.ts'
import { createOutput, type Format } from '../ctl/output.ts'
import { readPaper } from '../ctl/terminal.ts'
import { eachLine } from '../ctl/text.ts'
import { AppError } from '../errors/app-error.ts'
import { removeOnSignal } from '../system/remove-on-signal.ts'
import { build } from './build.ts'
import type { Desk } from './desk.ts'
import { inspect } from './inspect.ts'
import { validate } from './validate.ts'

/** The process behind `edgehostctl definition`; its command line has been checked by edgehostctl. */
async function main(): Promise<ExitName> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      profile: { type: 'string', multiple: true, default: [] },
      pack: { type: 'string', multiple: true, default: [] },
      file: { type: 'string' },
      name: { type: 'string' },
      release: { type: 'string' },
      output: { type: 'string', default: 'table' },
      'no-color': { type: 'boolean', default: false },
    },
  })
  // The reader has seen enough: edgehostctl ... | head.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(exitCodes.ok.code)
  })
  const [verb, file = ''] = positionals
  const desk = createDesk(values.output as Format, values['no-color'])
  if (verb === 'build') {
    const { profile: profiles, pack: packs, name, release } = values
    return build(desk, { profiles, packs, file: values.file, name, release })
  }
  return verb === 'inspect' ? inspect(desk, file) : validate(desk, file)
}

function createDesk(format: Format, noColor: boolean): Desk {
  return {
    output: createOutput({
      format,
      paper: readPaper(process.env, noColor),
      out: (text) => process.stdout.write(text),
      err: (text) => process.stderr.write(text),
    }),
    errors: process.stderr,
    onBreak: removeOnSignal(),
  }
}

main()
  .then((exitName) => {
    process.exitCode = exitCodes[exitName].code
  })
  .catch((error: unknown) => {
    const { message, code } = error as NodeJS.ErrnoException
    // A mistake of ours keeps its stack.
    if (!(error instanceof Failure) && !(error instanceof AppError) && code === undefined) throw error
    process.stderr.write(`edgehostctl: ${eachLine(message)}\n`)
    process.exitCode = exitCodes[error instanceof Failure ? error.exitName : 'failed'].code
  })
