import { program } from '../base/program.ts'
import { listKeys, type SchemaNode } from './key.ts'

/** The text of `--help`. */
export function helpText(schema: SchemaNode): string {
  const settings = listKeys(schema).map(({ path, schema }) => {
    const preset = schema.default === undefined ? '' : ` [${toFlagText(schema.default)}]`
    return `  --${path}=…${preset}\n        ${schema.description ?? ''}\n`
  })
  return `${introduction}\n${settings.join('')}`
}

function toFlagText(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value)
}

const introduction = `Usage: ${program.daemon} [options] [--section.key=value ...]

${program.purpose}

Options:
  --config PATH     Read this file in place of /etc/${program.folder}/config.yaml (also: ${program.environment}CONFIG).
                    Drop-ins are read from config.d/*.yaml beside it.
  --check-config    Check the configuration and exit: 0 when it is good, 78 when it is not.
  --print-config    Print the effective configuration, each value with its source, and exit.
  --end-sessions    Remove the secret that all tokens depend on, so that all users have to log in again, and exit.
                    For a state folder that was restored. A daemon that runs has to be restarted.
  --prime-cache     Compile the program into CACHE_DIRECTORY for faster starts, and exit. Must come first.
  --version         Print the version and exit.
  --help            Print this text and exit.

Settings, with their [defaults]. Each is a key of the file, a flag, and a variable of the environment:
api.tls.keyFile, --api.tls.keyFile=/path, ${program.environment}API_TLS_KEY_FILE=/path. Lists are separated by commas.
Flags win over the environment, the environment over drop-ins, drop-ins over the file.
`
