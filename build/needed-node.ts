/** Major version of Node that the programs need. */
export const neededNode = 24

/**
 * The first line of a program that users start with their own Node: if that is too old, it prints an error and ends
 * with 1. It works in every Node that can parse `oldestSyntax`.
 * @param program its name, for the message
 */
export const requireNode = (program: string): string =>
  `if(parseInt(process.versions.node,10)<${neededNode}){` +
  `process.stderr.write("${program} needs Node ${neededNode} or later; this is "+process.version+" ("+process.execPath+")\\n");` +
  `process.exit(1)}`

/** The syntax of such a program, so that an old Node can run that line. */
export const oldestSyntax = 'node12'
