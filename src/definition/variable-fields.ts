import { Type } from 'typebox'

const maybe = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

/** What the format, the API of hosts and that of the platform say of a variable alike: all but its name, default and options. */
export const variableFields = {
  displayName: maybe('For people.'),
  description: maybe('For people.'),
  format: maybe('string, number, boolean, version, ipv4, ipv4cidr, ipv6 or base64, in any case.'),
  inputType: Type.Optional(Type.Enum(['text', 'dropdown', 'multiline'])),
  regex: maybe('RE2.'),
  required: flag('The value may not be empty.'),
  hidden: flag('The variable is not shown.'),
  immutable: flag('The variable keeps its default.'),
  isSensitive: flag('The value is never shown.'),
}
