import { parseArgs } from 'node:util'
import { exitCodes, Failure, type ExitName } from '../ctl/exit-codes.ts'
import { createOutput, outputFailure, type Format } from '../ctl/output.ts'
import { readPaper } from '../ctl/terminal.ts'
import { eachLine } from '../ctl/layout.ts'
import { AppError } from '../errors/app-error.ts'
import { removeOnSignal } from '../program/remove-on-signal.ts'
import { OutputFailed, writeError } from '../program/standard-output.ts'
import { build } from './build.ts'
import type { CommandContext } from './context.ts'
import { buildContent } from './content/build.ts'
import { inspectContent } from './content/inspect.ts'
import { inspect } from './inspect.ts'
import { validate } from './opened.ts'

/** The program behind `edgehostctl definition` and `edgehostctl content`. edgehostctl has already checked the command line. */
async function main(): Promise<ExitName> {
  const list = { type: 'string', multiple: true, default: [] as string[] } as const
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      profile: list,
      pack: list,
      preset: list,
      // A list of `content build`; of `definition build` the file to write.
      file: list,
      name: { type: 'string' },
      release: { type: 'string' },
      'oci-layout': list,
      'image-archive': list,
      chart: list,
      programs: list,
      definition: list,
      content: list,
      list: { type: 'string' },
      kubernetes: { type: 'string' },
      archive: { type: 'string' },
      output: { type: 'string', default: 'table' },
      'no-color': { type: 'boolean', default: false },
    },
  })
  const [noun, verb, file = ''] = positionals
  const context = createContext(values.output as Format, values['no-color'])
  if (noun === 'content') {
    if (verb !== 'build') return inspectContent(context, file)
    return buildContent(context, {
      layouts: values['oci-layout'],
      archives: values['image-archive'],
      charts: values.chart,
      programs: values.programs,
      files: values.file,
      definitions: values.definition,
      file: values.archive,
    })
  }
  if (verb === 'build') {
    const { profile: profiles, pack: packs, preset: presets, name, release } = values
    return build(context, { profiles, packs, presets, file: values.file.at(-1), name, release })
  }
  if (verb === 'init') {
    const { name, kubernetes } = values
    return (await import('./init.ts')).init(context, { folder: file, name, kubernetes })
  }
  if (verb === 'needs')
    // Loaded here: it has the preparation of clusters in it.
    return (await import('./needs.ts')).needs(context, { file, bundles: values.content, list: values.list })
  return verb === 'inspect' ? inspect(context, file) : validate(context, file)
}

function createContext(format: Format, noColor: boolean): CommandContext {
  return {
    output: createOutput({ format, paper: readPaper(process.env, noColor) }),
    errors: process.stderr,
    removeOnSignal: removeOnSignal(),
  }
}

main()
  .then((exitName) => {
    process.exitCode = exitCodes[exitName].code
  })
  .catch((error: unknown) => {
    const failure = error instanceof OutputFailed ? outputFailure(error) : error
    const { message, code } = failure as NodeJS.ErrnoException
    // A bug of this program is thrown with its stack.
    if (!(failure instanceof Failure) && !(failure instanceof AppError) && code === undefined) throw failure
    if (message !== '') writeError(`edgehostctl: ${eachLine(message)}\n`)
    process.exitCode = exitCodes[failure instanceof Failure ? failure.exitName : 'failed'].code
  })
