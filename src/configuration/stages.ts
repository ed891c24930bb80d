// The stages of user data: commands and files of root, as cloud-config has them. Only a host whose configuration says `userData.stages: true` takes them.
// They are commands, which may not be done twice: they are run once, in the order of the text, and what cut them off is said. Pure.

import { parseDocument } from 'yaml'
import { isRecord } from '../base/json.ts'
import { refusedField, refuseUnknownFields } from '../errors/refused-field.ts'
import { longestStages, type StageStep } from './stage-steps.ts'

const fields = {
  step: ['commands', 'files', 'name'],
  file: ['content', 'encoding', 'path', 'permissions'],
} as const
const mostSteps = 200

/**
 * Reads stages: base64 of YAML, a map of the names of stages to lists of steps, perhaps below a key `stages`. A step has a name, commands of sh and files.
 * @throws AppError BadRequest with the path of what cannot be done
 */
export function readStages(sent: string): readonly StageStep[] {
  const packed = sent.replace(/\s+/g, '')
  if (packed.length > longestStages * 1.4)
    throw refusedField('stages', `are longer than ${longestStages} bytes`)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(packed) || packed.length % 4 !== 0)
    throw refusedField('stages', 'are not base64 of YAML: base64 --wrap=0 FILE')
  // In YAML 1.1, which cloud-config is read as, 0644 is octal.
  const document = parseDocument(Buffer.from(packed, 'base64').toString(), { version: '1.1' })
  const [error] = document.errors
  if (error !== undefined)
    throw refusedField('stages', `are not YAML: ${error.message.split('\n')[0]?.replace(/:$/, '') ?? ''}`)
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: 20 })
  } catch {
    throw refusedField('stages', 'have too many aliases')
  }
  const all = isRecord(value) && 'stages' in value ? value.stages : value
  if (isRecord(value) && 'stages' in value) refuseUnknownFields(value, ['stages'], 'stages.', 'stages')
  if (!isRecord(all)) throw refusedField('stages', 'are not a map of the names of stages to their steps')
  const steps = Object.entries(all).flatMap(([stage, list]) => {
    const path = `stages.${stage}`
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(stage))
      throw refusedField('stages', 'have a stage whose name is not letters, digits, dots, - and _')
    if (!Array.isArray(list)) throw refusedField(path, 'is not a list of steps')
    return (list as readonly unknown[]).map((step, index) => readStep(step, `${path}[${index}]`))
  })
  if (steps.length === 0) throw refusedField('stages', 'have no step')
  if (steps.length > mostSteps)
    throw refusedField('stages', `have ${steps.length} steps; at most ${mostSteps} are possible`)
  return steps
}

function readStep(step: unknown, path: string): StageStep {
  if (!isRecord(step)) throw refusedField(path, 'is not a step: a map of name, commands and files')
  refuseUnknownFields(step, fields.step, `${path}.`, 'a step that can be run here')
  const { commands = [], files = [] } = step
  if (!Array.isArray(commands)) throw refusedField(`${path}.commands`, 'are not a list')
  if (!Array.isArray(files)) throw refusedField(`${path}.files`, 'are not a list')
  return {
    path,
    commands: commands.map((command: unknown, index) => {
      if (typeof command !== 'string' || command.trim() === '' || command.includes('\0'))
        throw refusedField(`${path}.commands[${index}]`, 'is not a command')
      return command
    }),
    files: files.map((file: unknown, index) => readFile(file, `${path}.files[${index}]`)),
  }
}

function readFile(file: unknown, where: string): StageStep['files'][number] {
  if (!isRecord(file)) throw refusedField(where, 'is not a file: a map of path and content')
  refuseUnknownFields(file, fields.file, `${where}.`, 'a file that can be written here')
  const { path, content = '', encoding = '', permissions = 0o644 } = file
  if (typeof path !== 'string' || !/^\/[^\0\n]{0,4000}[^\0\n/]$/.test(path) || path.split('/').includes('..'))
    throw refusedField(`${where}.path`, 'is not the absolute path of a file')
  if (typeof content !== 'string') throw refusedField(`${where}.content`, 'is not a text')
  if (encoding !== '' && encoding !== 'base64' && encoding !== 'b64')
    throw refusedField(`${where}.encoding`, 'is neither base64 nor empty')
  const mode = modeOf(permissions)
  if (mode === undefined) throw refusedField(`${where}.permissions`, 'is not a mode of a file, as 0644')
  return {
    path,
    base64: encoding === '' ? Buffer.from(content).toString('base64') : content.replace(/\s+/g, ''),
    mode,
  }
}

function modeOf(permissions: unknown): number | undefined {
  const text = typeof permissions === 'string' ? /^0?o?([0-7]{1,3})$/.exec(permissions)?.[1] : undefined
  const mode = text === undefined ? permissions : Number.parseInt(text, 8)
  return typeof mode === 'number' && Number.isInteger(mode) && mode >= 0 && mode <= 0o777 ? mode : undefined
}
