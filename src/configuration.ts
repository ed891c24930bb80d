import * as commandLine from './config/command-line.ts'
import { defaultConfigFile as describeDefaults } from './config/default-file.ts'
import * as explain from './config/explain.ts'
import * as help from './config/help.ts'
import * as load from './config/load.ts'
import { checkReferencedFiles, configSchema, pairs, type Config } from './declarations.ts'
import { defaultStateDirectory } from './program/config.ts'

/** The effective configuration of the daemon and where each value came from. */
export type LoadedConfig = load.Loaded<Config>

export interface LoadConfigOptions extends Omit<load.LoadConfigOptions, 'schema' | 'pairs' | 'inspect'> {
  /**
   * If set, the cryptographic keys, files and mounts that the configuration names are checked too. Called for each file that could not
   * be checked, because only root may read it.
   */
  readonly onUnseen?: (file: string) => void
}

/** `parseCommandLine` of the room `config`, with the daemon's schema. */
export const parseCommandLine = (argv: readonly string[]) => commandLine.parseCommandLine(argv, configSchema)

/** `loadConfig` of the room `config`, with the daemon's schema. */
export async function loadConfig({ onUnseen, ...options }: LoadConfigOptions): Promise<LoadedConfig> {
  const inspect =
    onUnseen &&
    ((value: (path: string) => unknown) => {
      const directory = value('state.directory')
      const stateDirectory = typeof directory === 'string' ? directory : defaultStateDirectory
      return checkReferencedFiles({ value, stateDirectory, onUnseen })
    })
  const loaded = await load.loadConfig({
    schema: configSchema,
    pairs,
    ...options,
    ...(inspect ? { inspect } : {}),
  })
  // Every value was checked against the schema, and a test checks the defaults.
  return loaded as LoadedConfig
}

/** The effective configuration as YAML; see `explainConfig` of the room `config`. */
export const explainConfig = (loaded: explain.Explainable) => explain.explainConfig(loaded, configSchema)

/** The text of `--help`. */
export const helpText = () => help.helpText(configSchema)

/** The text of the configuration file that the package installs. */
export const defaultConfigFile = () => describeDefaults(configSchema)
