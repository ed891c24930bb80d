/** Major version of Node that the programs need. */
export const neededNode = 24

/**
 * The first line of a program that people start by a Node of their own: under one that is too old it says so and ends
 * with 1. For every Node that reads the syntax of `oldestSyntax`.
 * @param program its name, for the message
 */
export const requireNode = (program: string): string =>
  `if(parseInt(process.versions.node,10)<${neededNode}){` +
  `process.stderr.write("${program} needs Node ${neededNode} or later; this is "+process.version+" ("+process.execPath+")\\n");` +
  `process.exit(1)}`

/** What such a program is written in, so that an old Node comes as far as that line. */
export const oldestSyntax = 'node12'
