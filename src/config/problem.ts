/** A problem that an operator has to correct, and its place. */
export interface Problem {
  /** `file:line:column`, `file`, `environment NAME` or `flag --name` */
  readonly place: string
  readonly message: string
  /** Given where the setting is good, and the file or mount that it names is not. */
  readonly isOfFile?: true
}

/** Every problem of every layer, one line each in `message`. */
export class ConfigInvalid extends Error {
  override readonly name = 'ConfigInvalid'
  readonly problems: readonly Problem[]
  /** Whether the settings are good, and only a file or mount that they name is not: it may be, later. */
  readonly isOfNamedFiles: boolean

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ place, message }) => `${place}: ${message}`).join('\n'))
    this.problems = problems
    this.isOfNamedFiles = problems.every(({ isOfFile }) => isOfFile)
  }
}
