/** A problem that an operator has to correct, and its place. */
export interface Problem {
  /** `file:line:column`, `file`, `environment NAME` or `flag --name` */
  readonly place: string
  readonly message: string
}

/** Every problem of every layer, one line each in `message`. The daemon then exits with code 78. */
export class ConfigInvalid extends Error {
  override readonly name = 'ConfigInvalid'
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ place, message }) => `${place}: ${message}`).join('\n'))
    this.problems = problems
  }
}
