/** Something an operator has to correct, and where. */
export interface Problem {
  /** `file:line:column`, `file`, `environment NAME` or `flag --name` */
  readonly place: string
  readonly message: string
}

/** Every problem of every layer, one line each in `message`. The daemon answers it with exit code 78. */
export class ConfigInvalid extends Error {
  override readonly name = 'ConfigInvalid'
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ place, message }) => `${place}: ${message}`).join('\n'))
    this.problems = problems
  }
}
